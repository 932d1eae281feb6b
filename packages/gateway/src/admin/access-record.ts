import type { ProxiedRequest } from '../proxy/proxied-request.ts';
import type { RequestHead } from '../proxy/request-head.ts';

/** One line of the access log. It has no headers, no body and no query, because these can contain secrets. */
export interface AccessRecord {
  readonly time: string;
  readonly id: string;
  readonly client: string;
  readonly method: string;
  readonly host: string;
  readonly path: string;
  /** Null: no route matches, or the request was malformed. */
  readonly route: string | null;
  readonly upstream: string | null;
  /** The instance to which the last attempt was sent. */
  readonly instance: string | null;
  /** 499 if the client closed the connection before the response, as in nginx. */
  readonly status: number;
  readonly ms: number;
  readonly bytes: number;
  readonly attempts: number;
  /** For each failed attempt: the instance, the error, and what the gateway did then. */
  readonly reasons?: readonly string[];
  /** Why no further attempt was made. */
  readonly stop?: string;
  readonly fallback?: string;
}

const pathMax = 1024;

export function accessRecord(
  head: RequestHead,
  proxied: ProxiedRequest | undefined,
  status: number,
  epochMs: number,
  tookMs: number,
  bytes = proxied?.bytes ?? 0,
): AccessRecord {
  const { route } = head;
  const work = proxied?.machine;
  const reasons = work?.log.map(
    ({ target, class: judged, outcome, verdict }) =>
      `${target ?? '-'} ${judged} ${outcomeName(outcome)} ${verdict.kind}${'because' in verdict ? ` ${verdict.because}` : ''}`,
  );
  return {
    time: new Date(epochMs).toISOString(),
    id: head.requestId,
    client: head.client,
    method: head.method,
    host: head.host,
    path: head.path.slice(0, pathMax),
    route: route?.config.name ?? null,
    upstream: route?.config.upstream ?? null,
    instance: proxied?.latest?.instance.name ?? null,
    status: proxied?.wasAborted ? 499 : status,
    ms: Math.round(tookMs * 10) / 10,
    bytes,
    attempts: proxied?.attempts ?? 0,
    ...(reasons?.length && { reasons }),
    ...(work?.stop && { stop: work.stop }),
    ...(proxied?.fallback && { fallback: proxied.fallback }),
  };
}

/** Returns the status or the code, but not the message: it may contain data of a client. */
export function outcomeName(outcome: unknown): string {
  if (typeof outcome !== 'object' || outcome === null) return typeof outcome;
  const { status, code, name } = outcome as { status?: unknown; code?: unknown; name?: unknown };
  return String(status ?? code ?? name ?? 'error');
}

import type { ProxiedRequest } from '../proxy/proxied-request.ts';
import type { RequestHead } from '../proxy/request-head.ts';

/** One line of the access log. It has no header, no body and no query: these can hold secrets. */
export interface AccessRecord {
  readonly time: string;
  readonly id: string;
  readonly client: string;
  readonly method: string;
  readonly host: string;
  readonly path: string;
  /** Null: no route was found, or the request was not well-formed. */
  readonly route: string | null;
  readonly upstream: string | null;
  /** The instance of the last attempt. */
  readonly instance: string | null;
  /** 499 if the client closed the connection first, as nginx writes it. */
  readonly status: number;
  readonly ms: number;
  readonly bytes: number;
  readonly attempts: number;
  /** For each failed attempt: the instance, what happened and what was decided. */
  readonly reasons?: readonly string[];
  /** Why there was no further attempt. */
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
    bytes: proxied?.bytes ?? 0,
    attempts: proxied?.attempts ?? 0,
    ...(reasons?.length && { reasons }),
    ...(work?.stop && { stop: work.stop }),
    ...(proxied?.fallback && { fallback: proxied.fallback }),
  };
}

/** A status, or the code of an error; never its message, which may hold what a client sent. */
export function outcomeName(outcome: unknown): string {
  if (typeof outcome !== 'object' || outcome === null) return typeof outcome;
  const { status, code, name } = outcome as { status?: unknown; code?: unknown; name?: unknown };
  return String(status ?? code ?? name ?? 'error');
}

import {
  type Classifier,
  causesOf,
  http,
  type Judgement,
  type Outcome,
  type OutcomeClass,
  type Plan,
  readHint,
} from 'holdfast';
import { type Field, number } from 'holdfast/fields';
import type { HeaderSource } from 'holdfast/wire';

/** The part of a response that is classified. A `Response` object also fits. */
export interface ResponseHead {
  readonly status: number;
  readonly headers: HeaderSource;
}

export const statusField: Field<number, number> = number(undefined, 100, 599);

/**
 * How a client classifies responses: success, retry or failure. These rules come before the rules of the
 * policy.
 */
export interface ClassifyOptions<R extends ResponseHead> {
  /**
   * The statuses to retry. They replace the list of the policy. Default: 408, 425, 429 and 5xx, except 501 and 505–519.
   */
  readonly statuses?: readonly number[] | undefined;
  /** Called before all other rules. If it returns `undefined`, the other rules decide. Default: none. */
  readonly classify?: ((response: R) => Judgement | OutcomeClass | undefined) | undefined;
}

/** Errors of attempts that failed before a byte was sent. The server cannot have processed these requests. */
const unsent = new WeakSet<object>();

/** Errors of attempts that failed after a byte was sent. The server may have processed these requests. */
const sent = new WeakSet<object>();

/** Remembers whether the server may have processed the attempt that failed with `error`. */
export function noteFailed(error: unknown, hasStarted: boolean, wasRedirected: boolean): void {
  if (typeof error !== 'object' || error === null) return;
  if (!hasStarted) unsent.add(error);
  // Only a refused HTTP/2 stream proves that the server did not process a request that was sent.
  else if (wasRedirected || !isRefusedStream(error)) sent.add(error);
}

/**
 * Returns a classifier that runs before the classifier of the policy. `isKeyed`: the request has an
 * Idempotency-Key. In this case, a 409 with `Retry-After` means that an earlier attempt is still being
 * processed.
 */
export function responseClassifier<R extends ResponseHead>(
  { statuses, classify }: ClassifyOptions<R>,
  isKeyed: boolean,
): (plan: Plan) => Classifier {
  const listed = statuses && new Set(statuses);

  function classifyHead(outcome: Outcome & { ok: true }, epochMs: () => number) {
    const head = outcome.value as R;
    const { status, headers } = head;
    if (classify) {
      const judged = classify(head);
      if (judged !== undefined) return judged;
    }
    if (status < 400 && !listed?.has(status)) return listed ? 'ok' : undefined;
    const pushback = grpcPushback(headers);
    if (pushback) return pushback;
    if (status === 409 && isKeyed) {
      const { retryAfterMs } = readHint(headers, epochMs);
      if (retryAfterMs !== undefined)
        return withRetryNever({ class: 'transient', retryAfterMs }, outcome, epochMs);
    }
    if (!listed) return undefined;
    const usual = asJudgement(http.classify(outcome, epochMs) ?? 'ok');
    if (!listed.has(status)) return { ...usual, class: 'fatal' as const };
    if (usual.class === 'transient' || usual.class === 'throttled') return usual;
    return { ...usual, class: 'transient' as const, retryAfterMs: readHint(headers, epochMs).retryAfterMs };
  }

  const classifierFor = (plan: Plan): Classifier => {
    // If the user has set no rules, a status below 400 is always a success.
    const trustsStatus = !classify && !listed && plan.judgesValues < 2;
    return (outcome, epochMs) => {
      if (outcome.ok) {
        if (trustsStatus && (outcome.value as R).status < 400) return 'ok';
        const judged = classifyHead(outcome, epochMs);
        // After a redirect, the first server may have processed the request, even if the second server did not.
        return wasRedirected(outcome.value) ? processed(judged ?? plan.classify(outcome, epochMs)) : judged;
      }
      const { error } = outcome;
      if (unsent.has(Object(error))) {
        const judged = noTunnel(error, epochMs) ?? plan.classify(outcome, epochMs) ?? 'fatal';
        return { ...asJudgement(judged), unprocessed: true };
      }
      if (isClosedStream(error)) return 'transient';
      return sent.has(Object(error)) ? processed(plan.classify(outcome, epochMs)) : undefined;
    };
  };

  let classifiedPlan: Plan | undefined;
  let classifier: Classifier;
  // An update gives the policy a new plan (its compiled form). For a new plan, create a new classifier.
  return (plan) => {
    if (classifiedPlan !== plan) {
      classifiedPlan = plan;
      classifier = classifierFor(plan);
    }
    return classifier;
  };
}

function wasRedirected(head: unknown): boolean {
  return (head as { redirected?: boolean }).redirected === true;
}

function processed(judged: Judgement | OutcomeClass | undefined): Judgement {
  return { ...asJudgement(judged ?? 'fatal'), unprocessed: false };
}

function detailsOf(error: unknown): { code: unknown; message: string }[] {
  const details: { code: unknown; message: string }[] = [];
  try {
    for (const { code, message } of causesOf(error)) details.push({ code, message: String(message) });
  } catch {
    // A getter of the error threw. The details that were read before that are enough.
  }
  return details;
}

function isRefusedStream(error: unknown): boolean {
  return detailsOf(error).some(({ code, message }) =>
    /^ERR_HTTP2_GOAWAY|REFUSED_STREAM/.test(`${String(code)} ${message}`),
  );
}

/**
 * Returns true if the server closed the HTTP/2 stream without an error code. undici reports this as
 * `UND_ERR_INFO`.
 */
function isClosedStream(error: unknown): boolean {
  const found = detailsOf(error).find(({ code }) => code === 'UND_ERR_INFO');
  return found?.message.startsWith('HTTP/2: stream') ?? false;
}

/**
 * Classifies the refusal of a proxy to open a tunnel. undici gives the status only in the message of an abort
 * error.
 */
function noTunnel(error: unknown, epochMs: () => number): Judgement | OutcomeClass | undefined {
  const found = detailsOf(error).find(({ code }) => code === 'UND_ERR_ABORTED');
  const status = Number(/^Proxy response \(([45]\d\d)\)/.exec(found?.message ?? '')?.[1]);
  return status ? http.classify({ ok: true, value: { status, headers: {} } }, epochMs) : undefined;
}

/**
 * Copies `retry=never` of the response header `Holdfast` into the judgement. It forbids a retry, whatever the
 * status is.
 */
function withRetryNever(judged: Judgement, outcome: Outcome, epochMs: () => number): Judgement {
  const { retryNever } = asJudgement(http.classify(outcome, epochMs) ?? 'ok');
  return { ...judged, retryNever };
}

/** Reads `grpc-retry-pushback-ms`, the delay before a retry. A value that is not a number forbids retries. */
function grpcPushback(headers: HeaderSource): Judgement | undefined {
  const value =
    typeof headers.get === 'function' ? headers.get(pushbackName) : (headers as Fields)[pushbackName];
  if (value === undefined || value === null) return undefined;
  const text = String(value).trim();
  return /^\d{1,15}$/.test(text)
    ? { class: 'transient', retryAfterMs: Number(text) }
    : { class: 'transient', retryNever: true };
}

type Fields = Readonly<Record<string, string | readonly string[] | undefined>>;
const pushbackName = 'grpc-retry-pushback-ms';

function asJudgement(judged: Judgement | OutcomeClass): Judgement {
  return typeof judged === 'object' ? judged : { class: judged };
}

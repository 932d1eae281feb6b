import {
  type Classifier,
  http,
  type Judgement,
  type Outcome,
  type OutcomeClass,
  type Plan,
  readHint,
} from 'holdfast';
import { type Field, number } from 'holdfast/fields';
import type { HeaderSource } from 'holdfast/wire';

/** What is judged: a `Response`, or the head of one. */
export interface Answer {
  readonly status: number;
  readonly headers: HeaderSource;
}

/** A status that can be listed. */
export const status: Field<number, number> = number(undefined, 100, 599);

/** What a client says about responses, beyond its policy. */
export interface JudgementOptions<R extends Answer> {
  /** The statuses that are repeated, instead of the policy's. */
  readonly statuses?: readonly number[] | undefined;
  /** Asked first; undefined leaves it to the rest. */
  readonly classify?: ((response: R) => Judgement | OutcomeClass | undefined) | undefined;
}

/** Errors of attempts of which no byte was sent: those who hold the connection know. */
const unsent = new WeakSet<object>();

/** Errors of attempts that were sent, whatever they say of a connection: it may be the one that a redirect led to. */
const sent = new WeakSet<object>();

/**
 * Notes what is known of the attempt that failed with `error`: whether a byte of it was sent, and whether it was led on
 * from where it was sent to.
 */
export function noteFailed(error: unknown, hasStarted: boolean, hasMoved: boolean): void {
  if (typeof error !== 'object' || error === null) return;
  if (!hasStarted) unsent.add(error);
  // Of what was sent only HTTP/2 can say that it was not processed.
  else if (hasMoved || !isRefusedStream(error)) sent.add(error);
}

/**
 * The judge of a run, before its policy: what only the one who sent the request can know. `keyed`: it had an Idempotency-Key,
 * so a 409 that says when to come back means that an earlier attempt is still running.
 */
export function judgeOf<R extends Answer>(
  { statuses, classify }: JudgementOptions<R>,
  keyed: boolean,
): (plan: Plan) => Classifier {
  const listed = statuses && new Set(statuses);

  function judgeAnswer(outcome: Outcome & { ok: true }, epochMs: () => number) {
    const answer = outcome.value as R;
    const { status, headers } = answer;
    if (classify) {
      const judged = classify(answer);
      if (judged !== undefined) return judged;
    }
    if (status < 400 && !listed?.has(status)) return listed ? 'ok' : undefined;
    const pushback = pushedBack(headers);
    if (pushback) return pushback;
    if (status === 409 && keyed) {
      const { retryAfterMs } = readHint(headers, epochMs);
      if (retryAfterMs !== undefined) return withWord({ class: 'transient', retryAfterMs }, outcome, epochMs);
    }
    if (!listed) return undefined;
    const usual = asJudgement(http.classify(outcome, epochMs) ?? 'ok');
    if (!listed.has(status)) return { ...usual, class: 'fatal' as const };
    if (usual.class === 'transient' || usual.class === 'throttled') return usual;
    return { ...usual, class: 'transient' as const, retryAfterMs: readHint(headers, epochMs).retryAfterMs };
  }

  const judge = (plan: Plan): Classifier => {
    // Where nobody else has a say, a status below 400 is good.
    const trustsStatus = !classify && !listed && plan.judgesValues < 2;
    return (outcome, epochMs) => {
      if (outcome.ok) {
        if (trustsStatus && (outcome.value as R).status < 400) return 'ok';
        const judged = judgeAnswer(outcome, epochMs);
        // That it was not processed is said of the request that a redirect made of it.
        return wasLedOn(outcome.value) ? processed(judged ?? plan.classify(outcome, epochMs)) : judged;
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

  let known: Plan | undefined;
  let classifier: Classifier;
  // By plan, because a policy can be updated.
  return (plan) => {
    if (known !== plan) {
      known = plan;
      classifier = judge(plan);
    }
    return classifier;
  };
}

/** Whether a redirect was followed on the way to this answer: of a `Response`, or of a head. */
function wasLedOn(answer: unknown): boolean {
  return (answer as { redirected?: boolean }).redirected === true;
}

/** As it was judged, without proof that nothing was done. */
function processed(judged: Judgement | OutcomeClass | undefined): Judgement {
  return { ...asJudgement(judged ?? 'fatal'), unprocessed: false };
}

/** An error and its causes, as far as they can be read: they are somebody else's, and may go round in circles. */
function causesOf(error: unknown): { code: unknown; message: string }[] {
  const all: { code: unknown; message: string }[] = [];
  try {
    for (let each = error; typeof each === 'object' && each && all.length < causesMax; ) {
      const { code, message, cause } = each as { code?: unknown; message?: unknown; cause?: unknown };
      all.push({ code, message: String(message) });
      each = cause;
    }
  } catch {
    // It says no more.
  }
  return all;
}
const causesMax = 8;

/** The server has seen nothing of it but its number. */
function isRefusedStream(error: unknown): boolean {
  return causesOf(error).some(({ code, message }) =>
    /^ERR_HTTP2_GOAWAY|REFUSED_STREAM/.test(`${String(code)} ${message}`),
  );
}

/** A stream of HTTP/2 that the server closed without an error code is, to undici, no more than an information. */
function isClosedStream(error: unknown): boolean {
  const told = causesOf(error).find(({ code }) => code === 'UND_ERR_INFO');
  return told?.message.startsWith('HTTP/2: stream') ?? false;
}

/** What a proxy said instead of opening a tunnel: undici puts the status into a message, and calls it an abort. */
function noTunnel(error: unknown, epochMs: () => number): Judgement | OutcomeClass | undefined {
  const told = causesOf(error).find(({ code }) => code === 'UND_ERR_ABORTED');
  const status = Number(/^Proxy response \(([45]\d\d)\)/.exec(told?.message ?? '')?.[1]);
  return status ? http.classify({ ok: true, value: { status, headers: {} } }, epochMs) : undefined;
}

/** The server's word about repeating beats what a status usually means. */
function withWord(judged: Judgement, outcome: Outcome, epochMs: () => number): Judgement {
  const { retryNever } = asJudgement(http.classify(outcome, epochMs) ?? 'ok');
  return { ...judged, retryNever };
}

/** gRPC's way to say when to come back; what is not a number means never. */
function pushedBack(headers: HeaderSource): Judgement | undefined {
  const said =
    typeof headers.get === 'function' ? headers.get(pushbackName) : (headers as Fields)[pushbackName];
  if (said === undefined || said === null) return undefined;
  const text = String(said).trim();
  return /^\d{1,15}$/.test(text)
    ? { class: 'transient', retryAfterMs: Number(text) }
    : { class: 'transient', retryNever: true };
}

type Fields = Readonly<Record<string, string | readonly string[] | undefined>>;
const pushbackName = 'grpc-retry-pushback-ms';

function asJudgement(said: Judgement | OutcomeClass): Judgement {
  return typeof said === 'object' ? said : { class: said };
}

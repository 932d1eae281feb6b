import { causesOf } from '../classify/causes-of.ts';
import type { StopReason } from '../decide/verdict.ts';
import type { Story, StoryAttempt } from '../report/story.ts';
import { formatMs } from './format-duration.ts';
import { stopRemedies, stopSentences } from './stop-sentences.ts';

const lengthMax = 100;

/**
 * Returns a story (the record of a run) as text: each attempt, and why it was retried or not. Times are
 * counted from the start of the run. `tellStory(storyOf(error))` needs no check: without a story, the text
 * says that there is none.
 */
export function tellStory(story: Story | undefined): string {
  if (!story)
    return 'There is no story: the call succeeded, no policy ran it, or it threw a primitive value such as a text, which cannot carry a story (throw an Error).';
  return linesOf(story).join('\n');
}

function linesOf(story: Story): string[] {
  const { policy, attempts, tookMs, stop, log, inner } = story;
  const work = policy === undefined ? 'the work' : policy;
  const tries =
    attempts === 0 ? 'without an attempt' : attempts === 1 ? 'with 1 attempt' : `with ${attempts} attempts`;
  const head = `${work} ${stop ? 'failed' : 'succeeded'} ${tries} in ${wholeMs(tookMs)}`;
  return [
    head,
    ...log.map((each) => `  ${attemptLine(each, attempts)}`),
    ...(inner ? ['  inside that attempt:', ...linesOf(inner).map((line) => `    ${line}`)] : []),
    `  ${ending(story)}`,
  ];
}

function wholeMs(ms: number): string {
  return formatMs(Math.round(ms));
}

function attemptLine(entry: StoryAttempt, attempts: number): string {
  const { attempt, target, endedAtMs, class: outcomeClass, outcome, verdict } = entry;
  const at = target === undefined ? '' : ` at ${target}`;
  const line = `attempt ${attempt}${at} failed ${wholeMs(endedAtMs)} in: ${describe(outcome)} (${outcomeClass})`;
  if (verdict.kind === 'race') return `${line}; another attempt was still in flight`;
  if (verdict.kind !== 'retry') return `${line}; not tried again`;
  const wait = verdict.delayMs > 0 ? `${wholeMs(verdict.delayMs)} later` : 'at once';
  return attempts > attempt ? `${line}; tried again ${wait}` : `${line}; to be tried again ${wait}`;
}

const unknownSentence =
  'no pack knows this error, so it is not tried again: if it is temporary, mark it with `transient(error)`, give it a `status` or a `code`, or name a pack in `retryOn`';

/**
 * Returns advice for an error whose text contains an HTTP status, such as `new Error('status 503')`. Policies
 * do not read the status from the text of an error.
 */
function statusSentence(outcome: unknown): string | undefined {
  const [status] = /\b[45]\d\d\b/.exec(describe(outcome)) ?? [];
  if (status === undefined) return undefined;
  return `${status} in the text of an error is not read: return the response itself, or throw \`Object.assign(error, { status: ${status} })\`, and the policy knows what it means`;
}

const classifierSentence =
  'so the failure is not tried again: a classifier, such as a function in `retryOn`, returns `transient`, `throttled`, `fatal` or `ignored`, and `undefined` for a failure that it does not know';

function ending({ stop, attempts, log, retryAfterMs }: Story): string {
  if (!stop)
    return attempts === 0 ? 'nothing was called: the result was known' : `attempt ${attempts} succeeded`;
  const remedy = stopRemedies[stop];
  const last = log.at(-1);
  const why = last && (whyNotRetryable(stop, last) ?? whyImpatient(stop, last) ?? whyCancelled(stop, last));
  const after = retryAfterMs === undefined ? '' : `; calls are tried again in ${wholeMs(retryAfterMs)}`;
  return `stopped: ${stop} — ${why ?? stopSentences[stop]}${remedy ? `: ${remedy}` : ''}${after}`;
}

function whyNotRetryable(stop: StopReason, last: StoryAttempt): string | undefined {
  if (stop !== 'not_retryable') return undefined;
  // The note may also be about a header of the server. Such a note does not make a failure permanent.
  if (last.note?.startsWith('a classifier ')) return `${last.note}, ${classifierSentence}`;
  return last.unknown ? (statusSentence(last.outcome) ?? unknownSentence) : undefined;
}

function whyImpatient(stop: StopReason, last: StoryAttempt): string | undefined {
  if (stop !== 'patience_too_short' || last.verdict.kind !== 'give_up') return undefined;
  const { verdict, retryAfterMs } = last;
  const { waitMs, leftMs } = verdict;
  // A backoff of Infinity means that no attempt follows.
  if (waitMs === undefined || leftMs === undefined || waitMs === Infinity) return undefined;
  const left = leftMs > 0 ? `${wholeMs(leftMs)} were left` : 'no time was left';
  // The wait may also come from the backoff, or from the breaker.
  const isAsked = retryAfterMs !== undefined && retryAfterMs >= leftMs && retryAfterMs <= waitMs;
  return isAsked
    ? `the server asked for a wait of ${wholeMs(retryAfterMs)}, and ${left}`
    : `the wait for the next attempt would have been ${wholeMs(waitMs)}, and ${left}`;
}

function whyCancelled(stop: StopReason, { note }: StoryAttempt): string | undefined {
  return stop === 'cancelled' && note?.startsWith('onWait threw ')
    ? `${note}, and that ends the run`
    : undefined;
}

function describe(outcome: unknown): string {
  try {
    const words = inWords(outcome).replace(/\s+/g, ' ').trim();
    return words.length > lengthMax ? `${words.slice(0, lengthMax - 1)}…` : words;
  } catch {
    return 'something that cannot be read';
  }
}

function inWords(outcome: unknown): string {
  if (typeof outcome !== 'object' || outcome === null) return String(outcome);
  const { code, name, message, status, statusCode } = outcome as Record<string, unknown>;
  const number = status ?? statusCode;
  const called =
    typeof code === 'string' && code ? code : message === undefined ? '' : String(name ?? 'Error');
  if (!called) return number === undefined ? 'a value that was judged a failure' : `status ${number}`;
  const text = String(message ?? '');
  const words =
    (text === '' ? called : text.includes(called) ? text : `${called}: ${text}`) + causeCode(outcome, text);
  return number === undefined || text.includes(String(number)) ? words : `${words} (status ${number})`;
}

/**
 * Returns the code of the first cause that has a code, such as ` (ECONNRESET)`. Without it, a message such as
 * `fetch failed` does not say what failed.
 */
function causeCode(outcome: object, text: string): string {
  // The cause of an error of Holdfast is the error of an earlier attempt. That attempt has its own line in
  // the text.
  if (String((outcome as { code?: unknown }).code).startsWith('HOLDFAST_')) return '';
  const [, ...causes] = causesOf(outcome);
  for (const { code } of causes)
    if (typeof code === 'string' && code) return text.includes(code) ? '' : ` (${code})`;
  return '';
}

import type { Story, StoryAttempt } from '../report/story.ts';
import { formatMs } from './format-duration.ts';
import { stopSentences } from './stop-sentences.ts';

/** The most characters of text for one outcome. */
const lengthMax = 100;

/**
 * Returns a story (the record of a run) as text: each attempt, and why it was or was not tried again. Times count from
 * the start of the work.
 */
export function tellStory(story: Story): string {
  return linesOf(story).join('\n');
}

function linesOf(story: Story): string[] {
  const { policy, attempts, tookMs, stop, log, inner } = story;
  const work = policy === undefined ? 'the work' : policy;
  const tries =
    attempts === 0 ? 'without an attempt' : attempts === 1 ? 'with 1 attempt' : `with ${attempts} attempts`;
  const head = `${work} ${stop ? 'failed' : 'succeeded'} ${tries} in ${formatMs(tookMs)}`;
  return [
    head,
    ...log.map((each) => `  ${attemptLine(each, attempts)}`),
    ...(inner ? ['  inside that attempt:', ...linesOf(inner).map((line) => `    ${line}`)] : []),
    `  ${ending(story)}`,
  ];
}

function attemptLine(entry: StoryAttempt, attempts: number): string {
  const { attempt, target, endedAtMs, class: outcomeClass, outcome, verdict } = entry;
  const at = target === undefined ? '' : ` at ${target}`;
  const line = `attempt ${attempt}${at} failed ${formatMs(endedAtMs)} in: ${describe(outcome)} (${outcomeClass})`;
  if (verdict.kind === 'race') return `${line}; another attempt was still in flight`;
  if (verdict.kind !== 'retry') return `${line}; not tried again`;
  const wait = verdict.delayMs > 0 ? `${formatMs(verdict.delayMs)} later` : 'at once';
  return attempts > attempt ? `${line}; tried again ${wait}` : `${line}; to be tried again ${wait}`;
}

/** Says what to do about an error that no pack (a named classifier) knows. */
const unknownSentence =
  'no pack knows this error, so it is not tried again: if it is temporary, mark it with `transient(error)`, give it a `status` or a `code`, or name a pack in `retryOn`';

function ending({ stop, attempts, log }: Story): string {
  if (stop === 'not_retryable' && log.at(-1)?.unknown) return `stopped: ${stop} — ${unknownSentence}`;
  if (stop) return `stopped: ${stop} — ${stopSentences[stop]}`;
  return attempts === 0 ? 'nothing was called: the result was known' : `attempt ${attempts} succeeded`;
}

/** Describes an error or a value in a few words, on one line. Never throws. */
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
  const words = text === '' ? called : text.includes(called) ? text : `${called}: ${text}`;
  return number === undefined || text.includes(String(number)) ? words : `${words} (status ${number})`;
}

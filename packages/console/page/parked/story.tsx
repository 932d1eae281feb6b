import type { ComponentChildren } from 'preact';
import type { AnswerOf } from '../../src/api/routes.ts';
import { shortId, span } from '../format.ts';
import { Glyph, type State } from '../parts/glyph.tsx';
import { useWidth } from '../parts/use-width.ts';

export type ShownEvent = AnswerOf<'GET /parked/:id'>['event'];
type Run = ShownEvent['parkedRuns'][number];
type Attempt = Run['story'][number];

const left = 86;
const right = 40;
const rowHeight = 60;
const top = 18;

/**
 * A chart of all attempts and waits of an event, to scale. Each time that the event was parked has its own
 * line.
 */
export function StoryChart({ runs }: { readonly runs: readonly Run[] }) {
  const [box, width] = useWidth(480);
  const told = runs.filter(({ story }) => story.length > 0);
  const longestMs = Math.max(1, ...told.map(lengthOf));
  const step = niceStep(longestMs);
  const end = Math.ceil(longestMs / step) * step;
  const x = (ms: number) => left + (ms / end) * (width - left - right);
  const height = top + told.length * rowHeight + 24;
  const floor = height - 24;
  if (told.length === 0) return <p class="small quiet">No attempt is on record.</p>;
  return (
    <div ref={box}>
      <svg
        class="chart story-chart"
        viewBox={`0 0 ${width} ${height}`}
        width={width}
        height={height}
        role="img"
        aria-label={told.map(runInWords).join(' ')}
      >
        {Array.from({ length: Math.round(end / step) + 1 }, (_, index) => index * step).map((ms) => (
          <g key={ms}>
            <line class="grid" x1={x(ms)} x2={x(ms)} y1={top} y2={floor} />
            <text x={x(ms)} y={height - 6} text-anchor="middle">
              {axisText(ms, step)}
            </text>
          </g>
        ))}
        {told.map((run, index) => (
          <RunLine key={run.parkedAt} run={run} x={x} y={top + index * rowHeight + 22} />
        ))}
      </svg>
    </div>
  );
}

function RunLine({
  run,
  x,
  y,
}: {
  readonly run: Run;
  readonly x: (ms: number) => number;
  readonly y: number;
}) {
  const start = startOf(run);
  const last = run.story.at(-1)!;
  let lastLabelEnds = -Infinity;
  return (
    <g>
      <text class="strong" x={0} y={y + 4}>
        {run.replay === undefined ? 'live' : 'replay'}
      </text>
      <text x={0} y={y + 19}>
        {new Date(start).toLocaleTimeString()}
      </text>
      {run.story.map((attempt, index) => {
        const from = x(attempt.at - attempt.tookMs - start);
        const to = Math.max(from + 3, x(attempt.at - start));
        const next = run.story[index + 1];
        const waitMs = next ? next.at - next.tookMs - attempt.at : 0;
        const waitEnds = next ? x(next.at - next.tookMs - start) : to;
        const middle = (from + to) / 2;
        const hasLabel = middle - lastLabelEnds > 12;
        if (hasLabel) lastLabelEnds = middle;
        return (
          <g key={attempt.at}>
            <title>{attemptInWords(attempt)}</title>
            <rect class={`f-${stateOf(attempt)}`} x={from} y={y} width={to - from} height={16} rx={2} />
            {hasLabel && (
              <text class="strong" x={middle} y={y - 5} text-anchor="middle">
                {attempt.attempt}
              </text>
            )}
            {next && waitEnds > to && <line class="wait" x1={to} x2={waitEnds} y1={y + 8} y2={y + 8} />}
            {next && waitEnds - to > 34 && (
              <text x={(to + waitEnds) / 2} y={y + 28} text-anchor="middle">
                {seconds(waitMs)}
              </text>
            )}
          </g>
        );
      })}
      <rect class="f-parked" x={x(last.at - start) + 6} y={y + 1} width={14} height={14} rx={2} />
    </g>
  );
}

export function StoryList({ event }: { readonly event: ShownEvent }) {
  return (
    <ol class="story">
      {entriesOf(event).map(({ at, state, says }, index) => (
        <li key={index}>
          <time dateTime={new Date(at).toISOString()} title={new Date(at).toLocaleString()}>
            {exactTime(at)}
          </time>
          <Glyph state={state} label="" />
          <span>{says}</span>
        </li>
      ))}
    </ol>
  );
}

interface Entry {
  readonly at: number;
  readonly state: State;
  readonly says: ComponentChildren;
}

function entriesOf(event: ShownEvent): Entry[] {
  const { topic, originTopic, firstSeenAt, edits, acts } = event;
  const seen: Entry = {
    at: firstSeenAt,
    state: 'over',
    says: (
      <>
        First seen in <code>{originTopic}</code>
        {originTopic !== topic && (
          <>
            , consumed from <code>{topic}</code>
          </>
        )}
      </>
    ),
  };
  const people: Entry[] = [
    ...edits.map(({ who, why, at, changes }) => ({
      at,
      state: 'over' as const,
      says: (
        <>
          <b class="act">{who}</b> edited it: “{why}” (
          {changes
            .map(({ path, before, after }) => `${path}: ${before ?? 'nothing'} → ${after ?? 'nothing'}`)
            .join('; ')}
          )
        </>
      ),
    })),
    ...acts
      .filter(({ what }) => what !== 'edit')
      .map(({ who, why, at, what }) => ({
        at,
        state: 'over' as const,
        says: (
          <>
            <b class="act">{who}</b>: {what.replaceAll('_', ' ')}, “{why}”
          </>
        ),
      })),
  ];
  return [seen, ...event.parkedRuns.flatMap(runEntries), ...people].sort((a, b) => a.at - b.at);
}

function runEntries(run: Run, index: number): Entry[] {
  const entries: Entry[] = [];
  if (run.replay !== undefined)
    entries.push({
      at: run.story[0] ? startOf(run) : run.parkedAt,
      state: 'over',
      says: (
        <>
          Published again by{' '}
          <a href={`/replays/${encodeURIComponent(run.replay)}`}>
            replay <code>{shortId(run.replay)}</code>
          </a>
        </>
      ),
    });
  let before = 0;
  for (const [at, attempt] of run.story.entries()) {
    const missing = attempt.attempt - before - 1;
    if (at > 0 && missing > 0)
      entries.push({
        at: attempt.at - attempt.tookMs,
        state: 'over',
        says: `${missing} attempts between are not kept.`,
      });
    before = attempt.attempt;
    const isLast = at === run.story.length - 1;
    entries.push({
      at: attempt.at,
      state: stateOf(attempt),
      says: (
        <>
          Attempt {attempt.attempt} took {seconds(attempt.tookMs)}: {attempt.errorType}
          {attempt.errorMessage !== '' && `: ${attempt.errorMessage}`}, <b>{attempt.class}</b>.{' '}
          {isLast ? (
            <>
              <b>Parked</b>
              {index > 0 && ` for the ${ordinal(index + 1)} time`}: <code>{run.stop}</code>
              {run.stopSays !== undefined && `: ${run.stopSays}`}.
            </>
          ) : attempt.delayMs === undefined ? (
            ''
          ) : (
            `Again after ${seconds(attempt.delayMs)}.`
          )}
        </>
      ),
    });
  }
  if (run.story.length === 0)
    entries.push({
      at: run.parkedAt,
      state: 'parked',
      says: (
        <>
          <b>Parked</b>: <code>{run.stop}</code>
          {run.stopSays !== undefined && `: ${run.stopSays}`}. {run.message}
        </>
      ),
    });
  return entries;
}

function stateOf({ verdict, class: its }: Attempt): State {
  if (verdict === 'retry') return its === 'throttled' ? 'waiting' : 'retrying';
  return verdict === 'snooze' ? 'waiting' : 'parked';
}

function startOf({ story }: Run): number {
  return story[0]!.at - story[0]!.tookMs;
}

function lengthOf(run: Run): number {
  return run.story.at(-1)!.at - startOf(run);
}

function runInWords(run: Run, index: number): string {
  const attempts = run.story.length === 1 ? 'one attempt' : `${run.story.length} attempts`;
  const kind = run.replay === undefined ? `Run ${index + 1}` : `Run ${index + 1}, a replay`;
  return `${kind}: ${attempts} in ${span(lengthOf(run))}, then parked.`;
}

function attemptInWords({ attempt, tookMs, errorType, class: its }: Attempt): string {
  return `Attempt ${attempt}: ${seconds(tookMs)}, ${errorType}, ${its}`;
}

function seconds(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return ms < 60_000 ? `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s` : span(ms);
}

const steps = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 6e4, 12e4, 3e5, 6e5, 18e5, 36e5, 108e5, 432e5,
  864e5,
];

function niceStep(ms: number): number {
  return steps.find((each) => ms / each <= 5) ?? Math.ceil(ms / 5 / 864e5) * 864e5;
}

function axisText(ms: number, step: number): string {
  if (step < 1000) return `${ms} ms`;
  return step < 6e4 ? `${ms / 1000} s` : ms === 0 ? '0' : span(ms);
}

function exactTime(at: number): string {
  const time = new Date(at);
  return `${time.toLocaleTimeString([], { hourCycle: 'h23' })}.${String(time.getMilliseconds()).padStart(3, '0')}`;
}

function ordinal(count: number): string {
  return ['', 'first', 'second', 'third', 'fourth', 'fifth'][count] ?? `${count}th`;
}

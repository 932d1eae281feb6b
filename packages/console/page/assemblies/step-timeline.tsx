import { many, span } from '../format.ts';
import { useWidth } from '../parts/use-width.ts';
import { type AssemblyStep, stepLook } from './assembly-look.ts';

const row = 34;
const top = 14;
const right = 12;

interface Props {
  readonly steps: readonly AssemblyStep[];
  readonly from: number;
  /** Epoch ms; `undefined`: the assembly (work of several steps) is still running. */
  readonly endedAt: number | undefined;
  readonly now: number;
}

/** A chart of the steps over time. Attempts are bars, and waits between them are dotted lines. */
export function StepTimeline({ steps, from, endedAt, now }: Props) {
  const [box, width] = useWidth(300);
  const left = width < 480 ? 96 : 150;
  const dues = steps.flatMap(({ state, dueAt }) => (state === 'done' || dueAt === undefined ? [] : [dueAt]));
  const latest = Math.max(...steps.map(({ at }) => at), from);
  // Leave out due times far in the future: they would squeeze all past steps into a few pixels.
  const nearDues = dues.filter((due) => due - from < 3 * Math.max(1000, now - from));
  const until = Math.max(endedAt ?? now, latest, ...nearDues, from + 100);
  const x = (at: number) =>
    left + ((Math.min(until, Math.max(from, at)) - from) / (until - from)) * (width - left - right);
  const height = top + steps.length * row + 24;
  const says = steps
    .map((step) => `${step.path} ${step.state}, ${many(step.attempts, 'attempt')}`)
    .join('; ');
  return (
    <div ref={box}>
      <svg
        class="chart fit"
        viewBox={`0 0 ${width} ${height}`}
        role="img"
        aria-label={`Steps over time: ${says}.`}
      >
        {steps.map((step, index) => (
          <StepRow
            key={step.path}
            step={step}
            before={steps[index - 1]}
            from={from}
            now={now}
            index={index}
            x={x}
            left={left}
            width={width}
          />
        ))}
        {[0, 0.5, 1].map((share) => (
          <text
            key={share}
            x={x(from + (until - from) * share)}
            y={height - 5}
            text-anchor={share === 1 ? 'end' : 'middle'}
          >
            {span((until - from) * share)}
          </text>
        ))}
        {endedAt === undefined && (
          <>
            <line class="mark" x1={x(now)} x2={x(now)} y1={top - 4} y2={height - 20} />
            <text x={x(now)} y={top - 5} text-anchor={x(now) > width - 30 ? 'end' : 'middle'}>
              now
            </text>
          </>
        )}
      </svg>
    </div>
  );
}

interface RowProps {
  readonly step: AssemblyStep;
  readonly before: AssemblyStep | undefined;
  readonly from: number;
  readonly now: number;
  readonly index: number;
  readonly left: number;
  readonly width: number;
  x(at: number): number;
}

function StepRow({ step, before, from, now, index, x, left, width }: RowProps) {
  const y = top + index * row;
  const middle = y + row / 2;
  const look = stepLook(step);
  const story = step.story ?? [];
  // The start of a step is not recorded. Use the start of its first attempt, or the end of the step before.
  const begins =
    story.length > 0
      ? story[0]!.at - story[0]!.tookMs
      : Math.max(from, Math.min(step.at, before?.at ?? from));
  const isSettled = step.state === 'done' || step.state === 'failed';
  const bars = story.map(({ at, tookMs }) => ({ from: at - tookMs, to: at }));
  const ends = isSettled ? step.at : Math.max(now, step.at);
  const note = noteOf(step, begins, ends);
  const fits = x(ends) + 8 + note.length * 6 < width;
  return (
    <g>
      <text class="strong" x={left - 10} y={middle + 4} text-anchor="end">
        {step.path.length > 22 ? `…${step.path.slice(-21)}` : step.path}
      </text>
      <line class="grid" x1={0} x2={width} y1={y + row} y2={y + row} />
      {(bars.length > 0 || !isSettled || step.kind === 'sleep' || step.kind === 'wait') && (
        <line class="wait" x1={x(begins)} x2={x(ends)} y1={middle} y2={middle} />
      )}
      {bars.map((bar) => (
        <rect
          key={bar.to}
          class="f-retrying"
          x={x(bar.from)}
          y={middle - 8}
          width={Math.max(4, x(bar.to) - x(bar.from))}
          height={16}
          rx={2}
        />
      ))}
      {isSettled && (
        <rect
          class={`f-${look === 'over' ? 'faint' : look}`}
          x={bars.length > 0 || step.kind === 'sleep' || step.kind === 'wait' ? x(ends) - 2 : x(begins)}
          y={middle - 8}
          width={
            bars.length > 0 || step.kind === 'sleep' || step.kind === 'wait'
              ? 5
              : Math.max(5, x(ends) - x(begins))
          }
          height={16}
          rx={2}
        />
      )}
      {!isSettled && <circle class={`f-${look}`} cx={x(ends)} cy={middle} r={5} />}
      <text x={fits ? x(ends) + 10 : x(begins) - 8} y={middle + 4} text-anchor={fits ? 'start' : 'end'}>
        {fits || x(begins) - 8 - note.length * 6 > left ? note : ''}
      </text>
    </g>
  );
}

function noteOf({ state, attempts, kind }: AssemblyStep, begins: number, ends: number): string {
  const took = span(Math.max(0, ends - begins));
  if (state === 'waiting') return kind === 'sleep' ? 'sleeps' : 'waits';
  if (state === 'retrying') return `${many(attempts, 'attempt')}, again soon`;
  if (state === 'failed') return `given up after ${many(attempts, 'attempt')}`;
  return attempts > 1 ? `${many(attempts, 'attempt')}, ${took}` : took;
}

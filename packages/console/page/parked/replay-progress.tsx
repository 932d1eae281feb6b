import type { AnswerOf } from '../../src/api/routes.ts';
import { grouped, percent, span } from '../format.ts';
import { progress } from '../live.ts';
import { Glyph, type State, Tag } from '../parts/glyph.tsx';

export type ShownOperation = AnswerOf<'GET /replays/:id'>['operation'];

/**
 * Returns the operation with the newest counts. The live stream may have sent them since the operation was
 * loaded.
 */
export function withProgress(operation: ShownOperation): ShownOperation {
  const heard = progress.value[operation.id];
  if (!heard || operation.endedAt !== undefined) return operation;
  const counts = heard.counts as unknown as ShownOperation['counts'];
  const isNewer =
    counts.released >= operation.counts.released && counts.selected >= operation.counts.selected;
  return isNewer ? { ...operation, counts, stage: heard.stage as ShownOperation['stage'] } : operation;
}

/**
 * A stopped replay does not count the events that it has not published. In this case, the number from the
 * preview is used.
 */
function chosenCount({ stage, counts, expected = 0 }: ShownOperation): number {
  return stage === 'stopping' || stage === 'stopped' ? Math.max(counts.selected, expected) : counts.selected;
}

export function OperationTag({ operation }: { readonly operation: ShownOperation }) {
  const [state, says] = standing(operation);
  return <Tag state={state}>{says}</Tag>;
}

function standing({ stage, stopped, stoppedBy, counts }: ShownOperation): [State, string] {
  if (stage === 'done')
    return counts.failedAgain > 0 ? ['parked', 'done, some failed again'] : ['ok', 'done'];
  if (stage === 'stopped' || stage === 'stopping') {
    if (stoppedBy !== undefined) return ['over', `stopped by ${stoppedBy}`];
    return stopped === undefined ? ['over', stage] : ['parked', 'stopped itself'];
  }
  return ['waiting', stage];
}

const order: readonly string[] = ['selecting', 'canary', 'releasing', 'tracking', 'done'];

export function Stages({ operation }: { readonly operation: ShownOperation }) {
  const { stage, counts, canary = 0, rate = 0, stopped = '' } = operation;
  const isOver = stage === 'stopping' || stage === 'stopped';
  const isCanaryStopped = isOver && stopped.includes('canary');
  const hasCanary =
    canary > 0 && (isCanaryStopped || stage === 'selecting' || chosenCount(operation) > canary);
  // A stopped replay is shown at the stage in which it was stopped.
  const reached = isOver
    ? counts.released === 0
      ? 'selecting'
      : isCanaryStopped || (hasCanary && counts.released <= canary)
        ? 'canary'
        : 'releasing'
    : stage;
  const at = order.indexOf(reached);
  const judged = Math.min(canary, counts.released);
  const failed = Math.min(counts.failedAgain, judged);
  const says: readonly (readonly [string, string])[] = [
    ['selecting', `selected ${grouped(chosenCount(operation))}`],
    [
      'canary',
      !hasCanary
        ? 'no canary'
        : at < 1
          ? `canary of ${grouped(canary)}`
          : at > 1
            ? `canary: ${grouped(canary)} of ${grouped(canary)} succeeded`
            : failed > 0
              ? `canary: ${failed} of ${grouped(judged)} failed again`
              : `canary: ${grouped(Math.min(judged, counts.succeeded))} of ${grouped(canary)} succeeded, watched`,
    ],
    [
      'releasing',
      at === 2 ? `releasing ${rate} a second` : at > 2 ? `released ${grouped(counts.released)}` : 'releasing',
    ],
    ['tracking', stage === 'done' ? 'all have a result' : 'tracking'],
  ];
  return (
    <ol class="stages">
      {says.map(([name, text], index) => (
        <li
          key={name}
          class={index < at ? 'past' : index === at ? 'now' : ''}
          aria-current={index === at && !isOver ? 'step' : undefined}
        >
          {text}
        </li>
      ))}
    </ol>
  );
}

export function ReplayCounts({ operation }: { readonly operation: ShownOperation }) {
  const { counts, id, endedAt, leftMs, stopAbove, outstandingMax } = operation;
  const { released, succeeded, failedAgain } = counts;
  const selected = chosenCount(operation);
  const outstanding = Math.max(0, released - succeeded - failedAgain);
  const rest = Math.max(0, selected - released);
  const x = (count: number) => (selected > 0 ? (count / selected) * 1000 : 0);
  const failedWidth = failedAgain > 0 ? Math.max(4, x(failedAgain)) : 0;
  const of = (status: string) => `/parked?replayedBy=${encodeURIComponent(id)}&status=${status}&view=events`;
  return (
    <>
      <svg
        class="progress"
        viewBox="0 0 1000 12"
        preserveAspectRatio="none"
        role="img"
        aria-label={`${grouped(succeeded)} of ${grouped(selected)} succeeded, ${grouped(failedAgain)} failed again, ${grouped(outstanding)} on their way`}
      >
        <rect class="f-well" width={1000} height={12} />
        <rect class="f-ok" width={x(succeeded)} height={12} />
        <rect class="f-parked" x={x(succeeded)} width={failedWidth} height={12} />
        <rect class="f-waiting" x={x(succeeded) + failedWidth} width={x(outstanding)} height={12} />
      </svg>
      <ul class="keys">
        <Count state="ok" count={succeeded} href={of('resolved')} says="succeeded" />
        <Count
          state="parked"
          count={failedAgain}
          href={of('parked')}
          says="failed again"
          note={stopAbove === undefined ? '' : `stops by itself above ${percent(stopAbove, 0)}`}
        />
        <Count
          state="waiting"
          count={outstanding}
          href={of('replaying')}
          says="on their way"
          note={outstandingMax === undefined ? '' : `of ${grouped(outstandingMax)} at most`}
        />
        <Count
          state="over"
          count={rest}
          says={endedAt === undefined ? 'not yet released' : 'never released'}
          note={leftMs === undefined ? '' : `${span(leftMs)} at this rate`}
        />
      </ul>
    </>
  );
}

function Count({
  state,
  count,
  says,
  href,
  note = '',
}: {
  readonly state: State;
  readonly count: number;
  readonly says: string;
  readonly href?: string;
  readonly note?: string;
}) {
  return (
    <li>
      <Glyph state={state} label="" />
      <span>
        {href !== undefined && count > 0 ? (
          <a class="n" href={href}>
            {grouped(count)}
          </a>
        ) : (
          <span class="n">{grouped(count)}</span>
        )}{' '}
        {says}
      </span>
      {note !== '' && <small>{note}</small>}
    </li>
  );
}

export function ChangeCounts({ operation }: { readonly operation: ShownOperation }) {
  return (
    <p>
      <b>{grouped(operation.counts.changed)}</b> events changed
      {operation.endedAt === undefined ? ' so far' : ''}.
    </p>
  );
}

/** True if the operation stopped itself, for example because too many events failed again. */
export function stoppedItself({ stopped, stoppedBy }: ShownOperation): boolean {
  return stopped !== undefined && stoppedBy === undefined;
}

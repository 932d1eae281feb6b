import { useState } from 'preact/hooks';
import { useLocation, useRoute } from 'preact-iso';
import type { AnswerOf } from '../../src/api/routes.ts';
import { ApiError, ask } from '../api.ts';
import { grouped, many, percent, span } from '../format.ts';
import { useKeys } from '../keys.ts';
import { withWords } from '../parked/lot-url.ts';
import { dayOf, NumberField } from '../parked/many-dialogs.tsx';
import { undoOperation } from '../parked/operation-acts.ts';
import {
  ChangeCounts,
  OperationTag,
  ReplayCounts,
  type ShownOperation,
  Stages,
  stoppedItself,
  withProgress,
} from '../parked/replay-progress.tsx';
import { ActButton, ActDialog, CommandLine } from '../parts/act-dialog.tsx';
import { Ago } from '../parts/ago.tsx';
import { Empty, Trouble } from '../parts/quiet.tsx';
import { tell } from '../toast.tsx';
import { useAnswer } from '../use-answer.ts';

const runningMs = 1000;
const overMs = 10_000;

/**
 * One operation (such as a replay): its progress, the events that failed again, and buttons to slow or stop
 * it.
 */
export function Replay() {
  const { url, route, query } = useLocation();
  const { params } = useRoute();
  const id = params.id ?? '';
  const [isOver, setOver] = useState(false);
  const asked = useAnswer('GET /replays/:id', { path: { id } }, isOver ? overMs : runningMs);
  const { answer } = asked;
  const open = (dialog: string) => route(withWords(url, { do: dialog }));
  const close = () => route(withWords(location.pathname + location.search, { do: undefined }), true);
  const operation = answer && withProgress(answer.operation);
  const hasEnded = operation?.endedAt !== undefined;
  if (hasEnded !== isOver && operation) setOver(hasEnded);
  const canChange = operation !== undefined && !hasEnded && operation.stage !== 'stopping';
  useKeys({
    ...(canChange && {
      s: { says: 'stop it', run: () => open('stop') },
      ...(operation.kind === 'replay' && { v: { says: 'change its rate', run: () => open('rate') } }),
    }),
  });
  if (!operation)
    return (
      <section class="view" aria-busy={!asked.error}>
        {asked.error instanceof ApiError && asked.error.status === 404 ? (
          <div class="sheet">
            <h1 class="unseen" tabIndex={-1}>
              No such operation
            </h1>
            <Empty title={asked.error.message}>
              <a href="/replays">All replays</a>
            </Empty>
          </div>
        ) : (
          <Trouble answered={asked} />
        )}
      </section>
    );
  const isReplay = operation.kind === 'replay';
  return (
    <section class="view" aria-labelledby="replay-title">
      <header>
        <div>
          <p class="crumbs">
            <a href="/replays">Replays</a> › <code>{operation.id}</code>
          </p>
          <h1 id="replay-title" tabIndex={-1}>
            {headline(operation)}
          </h1>
          <p>
            <OperationTag operation={operation} /> {operation.who}, <Ago at={operation.startedAt} />: “
            {operation.why}”
            {operation.endedAt !== undefined && `. It took ${span(operation.endedAt - operation.startedAt)}.`}
          </p>
        </div>
        <div class="acts">
          {canChange && (
            <>
              {isReplay && (
                <ActButton onClick={() => open('rate')}>
                  {operation.rate} a second… <kbd>v</kbd>
                </ActButton>
              )}
              <ActButton onClick={() => open('stop')}>
                Stop… <kbd>s</kbd>
              </ActButton>
            </>
          )}
          {operation.undoUntil !== undefined && (
            <ActButton
              onClick={() => {
                void undoOperation(operation.id, operation.kind).then(asked.again);
              }}
            >
              Undo
            </ActButton>
          )}
        </div>
      </header>
      <Trouble answered={asked} />
      <div class="sheet">
        <header>
          <h2>{isReplay ? 'How far it is' : 'What it did'}</h2>
          <span class="small">
            chosen: <code>{operation.filter}</code>
            {operation.to !== undefined && ` · to topic ${operation.to}`}
          </span>
        </header>
        <div class="body stack">
          {isReplay ? (
            <>
              <Stages operation={operation} />
              <ReplayCounts operation={operation} />
            </>
          ) : (
            <ChangeCounts operation={operation} />
          )}
          {stoppedItself(operation) && <WhyStopped operation={operation} />}
        </div>
      </div>
      {answer.failedAgain.length > 0 && <FailedAgain id={id} groups={answer.failedAgain} />}
      <div class="sheet">
        <header>
          <h2>The same in a shell</h2>
        </header>
        <div class="body">
          <CommandLine command={operation.command} />
        </div>
      </div>
      {query.do === 'stop' && canChange && (
        <ActDialog
          title="Stop it"
          verb="Stop"
          command={`holdfast dlq replay --cancel ${id}`}
          isDestructive
          close={close}
          act={async (why, key) => {
            await ask('POST /replays/:id/stop', {
              path: { id },
              body: { why },
              headers: { 'idempotency-key': key },
            });
            asked.again();
            tell('It is stopping.');
          }}
        >
          <p class="soft">
            {isReplay
              ? `${many(Math.max(0, operation.counts.selected - operation.counts.released), 'event')} were not published yet: they stay parked as they were. What was published is handled.`
              : 'What it has changed stays changed, and can be undone.'}{' '}
            A stopped operation does not go on; a new one can be begun.
          </p>
        </ActDialog>
      )}
      {query.do === 'rate' && canChange && (
        <RateDialog operation={operation} close={close} done={asked.again} />
      )}
    </section>
  );
}

function RateDialog({
  operation,
  close,
  done,
}: {
  readonly operation: ShownOperation;
  readonly close: () => void;
  readonly done: () => void;
}) {
  const before = operation.rate ?? 50;
  const [rate, setRate] = useState(String(before));
  const wanted = Number(rate);
  const left = operation.counts.selected - operation.counts.released;
  const isGood = wanted > 0 && wanted <= 100_000 && wanted !== before;
  return (
    <ActDialog
      title="Slower or faster"
      verb={`Release ${rate} a second`}
      command={`holdfast dlq replay --resume ${operation.id} --rate ${rate}`}
      canSend={isGood}
      close={close}
      act={async (why, key) => {
        await ask('PATCH /replays/:id', {
          path: { id: operation.id },
          body: { rate: wanted, why },
          headers: { 'idempotency-key': key },
        });
        done();
        tell(`The replay releases ${rate} a second.`);
      }}
    >
      <div class="acts">
        {[0.25, 0.5, 2, 4].map((times) => (
          <button
            key={times}
            type="button"
            class="btn tiny"
            onClick={() => setRate(String(Math.max(0.1, Math.round(before * times * 10) / 10)))}
          >
            {times < 1 ? `÷ ${1 / times}` : `× ${times}`}
          </button>
        ))}
      </div>
      <NumberField label="A second" value={rate} set={setRate} />
      <p class="small quiet">
        {grouped(left)} are left: {wanted > 0 ? span((left / wanted) * 1000) : '…'} at this rate,{' '}
        {span((left / before) * 1000)} now.
      </p>
    </ActDialog>
  );
}

function WhyStopped({ operation }: { readonly operation: ShownOperation }) {
  const { counts, stopped, stopAbove = 0 } = operation;
  const isCanary = stopped?.includes('canary') ?? false;
  return (
    <p>
      {isCanary
        ? `The canary failed again: ${grouped(counts.failedAgain)} of the ${grouped(counts.released)} that went first. `
        : `More than ${percent(stopAbove, 0)} of the latest events failed again. `}
      The others were never released, and are parked as before.{' '}
      <a href={`/parked?replayedBy=${encodeURIComponent(operation.id)}&view=events`}>
        Look at the {grouped(counts.failedAgain)}
      </a>
    </p>
  );
}

function FailedAgain({
  id,
  groups,
}: {
  readonly id: string;
  readonly groups: AnswerOf<'GET /replays/:id'>['failedAgain'];
}) {
  return (
    <div class="sheet">
      <header>
        <h2>Failed again</h2>
        <span class="small">by error</span>
      </header>
      <div class="scroll">
        <table class="cards">
          <thead>
            <tr>
              <th>error</th>
              <th class="num">events</th>
              <th>last</th>
            </tr>
          </thead>
          <tbody>
            {groups.map(({ value = '', reason, message, count, lastAt, topics }) => (
              <tr key={value}>
                <td class="whole">
                  <a
                    href={`/parked?replayedBy=${encodeURIComponent(id)}&group=${encodeURIComponent(value)}&view=events`}
                    data-row={value}
                  >
                    <b>{reason}</b> {message}
                  </a>
                  <span class="two-line">
                    <code>{value}</code> · {topics?.join(', ')}
                  </span>
                </td>
                <td class="num" data-is="events">
                  {grouped(count)}
                </td>
                <td class="nowrap" data-is="last">
                  {lastAt !== undefined && <Ago at={lastAt} />}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}

function headline(operation: ShownOperation): string {
  const { kind, counts, endedAt, undoUntil } = operation;
  if (kind !== 'replay') {
    const until = undoUntil === undefined ? '' : `, which can be undone until ${dayOf(undoUntil)}`;
    return `A ${kind} of ${many(counts.changed, 'event')}${until}.`;
  }
  if (endedAt === undefined)
    return `${grouped(counts.succeeded + counts.failedAgain)} of ${many(counts.selected, 'event')} have a result.`;
  if (stoppedItself(operation)) return `It stopped itself after ${many(counts.released, 'event')}.`;
  if (operation.stopped !== undefined) return `It was stopped after ${many(counts.released, 'event')}.`;
  return counts.failedAgain === 0
    ? `All ${grouped(counts.succeeded)} succeeded.`
    : `${grouped(counts.succeeded)} succeeded, ${grouped(counts.failedAgain)} failed again.`;
}

import { useLocation } from 'preact-iso';
import { grouped, shortId, span } from '../format.ts';
import { withWords } from '../parked/lot-url.ts';
import {
  OperationTag,
  ReplayCounts,
  type ShownOperation,
  Stages,
  stoppedItself,
  withProgress,
} from '../parked/replay-progress.tsx';
import { Ago } from '../parts/ago.tsx';
import { Empty, Trouble } from '../parts/quiet.tsx';
import { useAnswer } from '../use-answer.ts';

const refreshMs = 2000;

export function Replays() {
  const { url, query } = useLocation();
  const isAll = query.kind === 'all';
  const { cursor } = query;
  const asked = useAnswer(
    'GET /replays',
    { query: { kind: isAll ? 'all' : 'replay', limit: 50, ...(cursor !== undefined && { cursor }) } },
    refreshMs,
  );
  const items = (asked.answer?.items ?? []).map(withProgress);
  const running = items.filter(({ endedAt }) => endedAt === undefined);
  const over = items.filter(({ endedAt }) => endedAt !== undefined);
  return (
    <section class="view" aria-labelledby="replays-title">
      <header>
        <div>
          <h1 id="replays-title" tabIndex={-1}>
            {asked.answer ? headline(running, over) : 'Replays'}
          </h1>
          <p>
            A replay is stored: whoever closes this page, or kills the process that runs it, it goes on where
            it was.
          </p>
        </div>
        <nav class="segments" aria-label="What is listed">
          <a
            class="btn"
            aria-current={isAll ? undefined : 'true'}
            href={withWords(url, { kind: undefined, cursor: undefined })}
          >
            Replays
          </a>
          <a
            class="btn"
            aria-current={isAll ? 'true' : undefined}
            href={withWords(url, { kind: 'all', cursor: undefined })}
          >
            All operations
          </a>
        </nav>
      </header>
      <Trouble answered={asked} />
      {running.map((operation) => (
        <div class="sheet" key={operation.id}>
          <header>
            <h2>
              <a href={hrefOf(operation)}>
                <code>{shortId(operation.id)}</code>
              </a>{' '}
              {operation.filter}
            </h2>
            <span class="small">
              {operation.who}, <Ago at={operation.startedAt} />: “{operation.why}”
            </span>
          </header>
          <div class="body stack">
            {operation.kind === 'replay' ? (
              <>
                <Stages operation={operation} />
                <ReplayCounts operation={operation} />
              </>
            ) : (
              <p>
                {operation.kind}: <b>{grouped(operation.counts.changed)}</b> events changed so far.
              </p>
            )}
          </div>
        </div>
      ))}
      {over.length > 0 && (
        <div class="sheet">
          <header>
            <h2>Over</h2>
          </header>
          <div class="scroll">
            <table class="cards">
              <thead>
                <tr>
                  <th>{isAll ? 'operation' : 'replay'}</th>
                  <th>who and why</th>
                  <th class="num">{isAll ? 'succeeded or changed' : 'succeeded'}</th>
                  <th class="num">failed again</th>
                  <th>how it ended</th>
                  <th>when</th>
                </tr>
              </thead>
              <tbody>
                {over.map((operation) => (
                  <OverRow key={operation.id} operation={operation} />
                ))}
              </tbody>
            </table>
          </div>
          {asked.answer?.cursor !== undefined && (
            <nav class="pages" aria-label="Pages">
              <a rel="next" href={withWords(url, { cursor: asked.answer.cursor })}>
                Older
              </a>
            </nav>
          )}
        </div>
      )}
      {asked.answer && items.length === 0 && (
        <div class="sheet">
          <Empty title="Nothing was replayed yet.">
            Choose events in the <a href="/parked">parking lot</a>, and replay them from there.
          </Empty>
        </div>
      )}
    </section>
  );
}

function OverRow({ operation }: { readonly operation: ShownOperation }) {
  const { counts, kind, startedAt, endedAt = startedAt } = operation;
  return (
    <tr>
      <td class="whole">
        <a href={hrefOf(operation)} data-row={operation.id}>
          <code>{shortId(operation.id)}</code> {kind === 'replay' ? '' : `${kind} `}
          {operation.filter}
        </a>
      </td>
      <td class="whole">
        {operation.who}
        <span class="two-line">“{operation.why}”</span>
      </td>
      <td class="num" data-is={kind === 'replay' ? 'succeeded' : 'changed'}>
        {grouped(kind === 'replay' ? counts.succeeded : counts.changed)}
      </td>
      <td class={counts.failedAgain > 0 ? 'num' : 'num zero'} data-is="failed again">
        {grouped(counts.failedAgain)}
      </td>
      <td>
        <OperationTag operation={operation} />
        <span class="two-line">in {span(endedAt - startedAt)}</span>
      </td>
      <td class="nowrap" data-is="when">
        <Ago at={endedAt} />
      </td>
    </tr>
  );
}

function hrefOf({ id }: ShownOperation): string {
  return `/replays/${encodeURIComponent(id)}`;
}

function headline(running: readonly ShownOperation[], over: readonly ShownOperation[]): string {
  const stopped = over.filter(stoppedItself).length;
  const runs =
    running.length === 0
      ? 'No replay is running'
      : running.length === 1
        ? 'One replay is running'
        : `${running.length} replays are running`;
  const stops =
    stopped === 0 ? '' : stopped === 1 ? ', one stopped itself' : `, ${stopped} stopped themselves`;
  return `${runs}${stops}.`;
}

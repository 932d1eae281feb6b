import { useState } from 'preact/hooks';
import { ask } from '../api.ts';
import { grouped, many, shortId } from '../format.ts';
import { ActButton, ActDialog } from '../parts/act-dialog.tsx';
import { Ago } from '../parts/ago.tsx';
import type { State } from '../parts/glyph.tsx';
import { Glyph } from '../parts/glyph.tsx';
import { Empty, Trouble } from '../parts/quiet.tsx';
import { shellWord } from '../shell-word.ts';
import { tell } from '../toast.tsx';
import { useAnswer } from '../use-answer.ts';
import { useQuery } from '../use-query.ts';

const states = [
  ['', 'all'],
  ['ready', 'ready'],
  ['delayed', 'delayed'],
  ['behind', 'behind'],
  ['held', 'held'],
  ['leased', 'in hand'],
  ['suspect', 'suspect'],
  ['blocking', 'blocking'],
] as const;

const looks: Readonly<Record<string, State>> = {
  ready: 'waiting',
  delayed: 'retrying',
  behind: 'waiting',
  held: 'waiting',
  leased: 'ok',
  suspect: 'parked',
  blocking: 'parked',
};

/** The unfinished events of a topic, in the order of their due times. */
export function WaitingList({ topic }: { readonly topic: string }) {
  const { query, href, go, replace } = useQuery();
  const { state, key, tenant, cursor } = query;
  const asked = useAnswer(
    'GET /topics/:topic/waiting',
    { path: { topic }, query: { limit: 50, state, key, tenant, cursor } },
    4000,
  );
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const items = asked.answer?.items ?? [];
  const ids = items.filter(({ id }) => chosen.has(id)).map(({ id }) => id);
  const choose = (id: string, isOn: boolean) =>
    setChosen((before) => new Set(isOn ? [...before, id] : [...before].filter((each) => each !== id)));
  const act = query.act === 'retry' || query.act === 'unblock' ? query.act : undefined;
  return (
    <div class="sheet scroll">
      <header>
        <h2>Waiting</h2>
        <span class="small">those that are due first stand first</span>
        <span class="acts right">
          <ActButton isTiny onClick={() => ids.length > 0 && go({ act: 'retry' })}>
            {ids.length > 0 ? `Retry ${many(ids.length, 'event')} now…` : 'Retry now…'}
          </ActButton>
          <ActButton isTiny onClick={() => ids.length > 0 && go({ act: 'unblock' })}>
            Unblock…
          </ActButton>
          <ActButton isTiny onClick={() => ids[0] && go({ act: 'skip', event: ids[0] })}>
            Skip…
          </ActButton>
        </span>
      </header>
      <div class="body chips">
        <nav class="segments" aria-label="State of events">
          {states.map(([each, says]) => (
            <a
              key={each}
              class="btn tiny"
              href={href({ state: each, cursor: undefined })}
              aria-current={(state ?? '') === each ? 'true' : undefined}
            >
              {says}
            </a>
          ))}
        </nav>
        <form
          class="chips"
          onSubmit={(event) => {
            event.preventDefault();
            const given = new FormData(event.currentTarget);
            go({ key: String(given.get('key')), tenant: String(given.get('tenant')), cursor: undefined });
          }}
        >
          <input
            class="input short"
            name="key"
            placeholder="key"
            aria-label="Only this key"
            defaultValue={key ?? ''}
          />
          <input
            class="input short"
            name="tenant"
            placeholder="tenant"
            aria-label="Only this tenant"
            defaultValue={tenant ?? ''}
          />
          <button type="submit" class="btn tiny">
            Filter
          </button>
        </form>
      </div>
      <Trouble answered={asked} />
      {asked.answer && items.length === 0 && (
        <Empty title="Nothing waits here.">
          {state || key || tenant
            ? 'No unfinished event fits this filter.'
            : 'All events of this topic are finished.'}
        </Empty>
      )}
      {items.length > 0 && (
        <table class="cards">
          <thead>
            <tr>
              <th>
                <span class="unseen">chosen</span>
              </th>
              <th>event</th>
              <th>state</th>
              <th>due</th>
              <th class="num">attempts</th>
              <th>last error</th>
            </tr>
          </thead>
          <tbody>
            {items.map((event) => (
              <tr key={event.id} aria-selected={chosen.has(event.id)}>
                <td>
                  <input
                    type="checkbox"
                    aria-label={`Choose ${event.id}`}
                    checked={chosen.has(event.id)}
                    onChange={({ currentTarget }) => choose(event.id, currentTarget.checked)}
                  />
                </td>
                <td class="whole">
                  {event.state === 'blocking' ? (
                    <a class="mono" href={`/parked/${encodeURIComponent(event.id)}`}>
                      {shortId(event.id)}
                    </a>
                  ) : (
                    <span class="mono" title={event.id}>
                      {shortId(event.id)}
                    </span>
                  )}
                  <span class="two-line">
                    {[event.type, event.key && `key ${event.key}`, event.tenant].filter(Boolean).join(' · ')}
                  </span>
                </td>
                <td>
                  <span class={`state is-${looks[event.state] ?? 'waiting'}`}>
                    <Glyph state={looks[event.state] ?? 'waiting'} label="" />
                    {states.find(([each]) => each === event.state)?.[1] ?? event.state}
                  </span>
                </td>
                <td class="nowrap" data-is="due">
                  <Ago at={event.dueAt} />
                </td>
                <td class="num" data-is="attempts">
                  {grouped(event.attempts)}
                  {event.deaths > 0 && `, ${many(event.deaths, 'crash', 'crashes')}`}
                </td>
                <td class="whole soft cut">{event.lastError}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {(asked.answer?.cursor || cursor) && (
        <footer>
          {cursor && <a href={href({ cursor: undefined })}>From the beginning</a>}
          {asked.answer?.cursor && <a href={href({ cursor: asked.answer.cursor })}>More</a>}
        </footer>
      )}
      {act && ids.length > 0 && (
        <ActDialog
          title={act === 'retry' ? 'Retry now' : 'Unblock'}
          verb={
            act === 'retry' ? `Retry ${many(ids.length, 'event')}` : `Unblock ${many(ids.length, 'event')}`
          }
          command={`holdfast topics ${act} ${shellWord(topic)} ${ids.map(shellWord).join(' ')}`}
          close={() => replace({ act: undefined })}
          act={async (why, key) => {
            const name =
              act === 'retry' ? 'POST /topics/:topic/waiting/retry' : 'POST /topics/:topic/waiting/unblock';
            const { changed } = await ask(name, {
              path: { topic },
              body: { ids, why },
              headers: { 'idempotency-key': key },
            });
            setChosen(new Set());
            asked.again();
            tell(
              act === 'retry'
                ? `${many(changed, 'event')} ${changed === 1 ? 'is' : 'are'} due now.`
                : `${many(changed, 'event')} no longer in the way.`,
            );
          }}
        >
          <p>
            {act === 'retry'
              ? `${many(ids.length, 'event')} that you have chosen become due now; those that are not delayed stay as they are.`
              : `Later events of the same keys no longer wait for ${ids.length === 1 ? 'this one' : 'these'}. Their order is given up for good.`}
          </p>
        </ActDialog>
      )}
    </div>
  );
}

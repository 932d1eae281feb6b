import { grouped, many, percent, span } from '../format.ts';
import { ActButton } from '../parts/act-dialog.tsx';
import { ControlList } from '../parts/control-list.tsx';
import { Glyph, type State } from '../parts/glyph.tsx';
import { Trouble } from '../parts/quiet.tsx';
import { DueChart } from '../topics/due-chart.tsx';
import { TopicActDialog, type TopicActName, topicActs } from '../topics/topic-act-dialog.tsx';
import { type TopicState, topicWord } from '../topics/topic-state.ts';
import { WaitingList } from '../topics/waiting-list.tsx';
import { useAnswer } from '../use-answer.ts';
import { useQuery } from '../use-query.ts';

export function Topic({ topic: name = '' }: { readonly topic?: string }) {
  const asked = useAnswer('GET /topics/:topic', { path: { topic: name } }, 2000);
  const due = useAnswer('GET /topics/:topic/due', { path: { topic: name } }, 4000);
  const { query, go, replace } = useQuery();
  const topic = asked.answer?.topic;
  const act = topicActs.find((each) => each === query.act);
  const open = (which: TopicActName) => () => go({ act: which });
  return (
    <section class="view" aria-labelledby="topic-title">
      <header>
        <div>
          <p class="crumbs">
            <a href="/topics">Topics</a>
          </p>
          <h1 id="topic-title" tabIndex={-1}>
            {topic ? headline(topic) : name}
          </h1>
          <p>{topic && summary(topic)}</p>
        </div>
        <div class="acts">
          <ActButton onClick={open('pause')}>Pause…</ActButton>
          <ActButton onClick={open('quarantine')}>Quarantine…</ActButton>
          <ActButton onClick={open('reroute')}>Reroute…</ActButton>
          <ActButton onClick={open('concurrency')}>Limit…</ActButton>
        </div>
      </header>
      <Trouble answered={asked} />
      {topic && (
        <>
          <Brake topic={topic} />
          <Figures topic={topic} />
          <div class="two">
            <div class="stack">
              <div class="sheet">
                <header>
                  <h2>When events are due</h2>
                  <span class="small">heights are logarithmic</span>
                </header>
                <div class="body">
                  <Trouble answered={due} />
                  {due.answer && <DueChart bounds={due.answer.bounds} counts={due.answer.counts} />}
                </div>
              </div>
              <Consumers topic={topic} />
            </div>
            <div class="sheet">
              <header>
                <h2>Controls in force</h2>
              </header>
              <div class="body">
                <ControlList controls={topic.controls} again={asked.again} />
              </div>
            </div>
          </div>
          <WaitingList topic={name} />
        </>
      )}
      {act && (
        <TopicActDialog
          name={act}
          topic={name}
          counts={topic?.counts}
          eventId={query.event}
          again={asked.again}
          close={() => replace({ act: undefined, event: undefined })}
        />
      )}
    </section>
  );
}

function headline(topic: TopicState): string {
  const { says } = topicWord(topic);
  const { topic: name, counts, waitsFor } = topic;
  if (says === 'braked') return `${name} waits for ${waitsFor.join(' and ')}.`;
  if (says === 'paused' || says === 'retries paused') return `${name}: ${says}.`;
  if (says === 'nobody consumes') return `Nobody consumes ${name}; ${many(counts.ready, 'event')} wait.`;
  if (says === 'no consumer') return `${name} has no consumer, and nothing to do.`;
  return says === 'running' ? `${name} flows.` : `${name} flows, with ${says}.`;
}

function summary({ counts, oldestReadyMs, nextDueInMs }: TopicState): string {
  const ready = `${many(counts.ready, 'event')} ready${counts.ready > 0 ? `, the oldest for ${span(oldestReadyMs)}` : ''}`;
  const delayed = `${grouped(counts.delayed)} delayed`;
  const next =
    nextDueInMs !== undefined && nextDueInMs > 0 ? `; the next is due in ${span(nextDueInMs)}` : '';
  return `${ready}, ${delayed}, ${grouped(counts.leased)} in hand${next}.`;
}

/**
 * Shown while the circuit breakers of a dependency are open. Meanwhile, consumers take no events: the events
 * wait and are not parked.
 */
function Brake({ topic: { waitsFor, counts } }: { readonly topic: TopicState }) {
  if (waitsFor.length === 0) return null;
  return (
    <p class="banner">
      <Glyph state="refused" label="braked" />
      <span>
        <b>Braked.</b> While the breakers of{' '}
        {waitsFor.map((policy, index) => (
          <span key={policy}>
            {index > 0 && ' and '}
            <a href={`/policies/${encodeURIComponent(policy)}`}>{policy}</a>
          </span>
        ))}{' '}
        are open nothing is taken: {many(counts.ready, 'event')} {counts.ready === 1 ? 'waits' : 'wait'} here,
        and no attempt is used up.
      </span>
    </p>
  );
}

const figures = [
  ['ready', 'Ready', 'due, and free to be taken'],
  ['delayed', 'Delayed', 'due later'],
  ['behind', 'Behind', 'wait for an earlier one of their key'],
  ['held', 'Held', 'in quarantine'],
  ['leased', 'In hand', 'with a consumer now'],
  ['suspect', 'Suspect', 'their consumers died; tried alone'],
] as const;

function Figures({ topic: { topic, counts, parked } }: { readonly topic: TopicState }) {
  const { href } = useQuery();
  return (
    <div class="sheet">
      <ul class="figures">
        {figures.map(([state, label, note]) => (
          <li key={state}>
            <span class="label">{label}</span>
            <strong>
              <a href={href({ state, cursor: undefined })}>{grouped(counts[state])}</a>
            </strong>
            <span class="note">{note}</span>
          </li>
        ))}
      </ul>
      <footer>
        <span>
          <a href={`/parked?topic=${encodeURIComponent(topic)}`}>{grouped(parked)} parked</a>
          {counts.blocking > 0 && (
            <>
              {' · '}
              <a href={href({ state: 'blocking', cursor: undefined })}>
                {grouped(counts.blocking)} of them hold later events of their key
              </a>
            </>
          )}
        </span>
      </footer>
    </div>
  );
}

const statuses: Readonly<Record<string, readonly [state: State, says: string]>> = {
  running: ['ok', 'running'],
  dependency_down: ['refused', 'braked'],
  paused: ['waiting', 'paused'],
  idle: ['over', 'not started'],
  stopped: ['over', 'stopped'],
};

function Consumers({ topic: { consumers } }: { readonly topic: TopicState }) {
  return (
    <div class="sheet scroll">
      <header>
        <h2>Consumers</h2>
      </header>
      {consumers.length === 0 ? (
        <div class="body">
          <p class="quiet small">No process that reports to this store consumes it.</p>
        </div>
      ) : (
        <table class="cards">
          <thead>
            <tr>
              <th>consumer</th>
              <th>process</th>
              <th>status</th>
              <th class="num">running</th>
              <th class="num">attempts</th>
              <th class="num">ok after retry</th>
              <th class="num">parked</th>
            </tr>
          </thead>
          <tbody>
            {consumers.map(({ name, process, status, running, concurrency, counters }) => {
              const [state, says] = statuses[status] ?? ['waiting', status.replaceAll('_', ' ')];
              const count = (each: string) => Number(counters[each] ?? 0);
              const settled = Math.max(1, count('succeeded') + count('parked'));
              return (
                <tr key={name + process}>
                  <td>
                    <b>{name}</b>
                  </td>
                  <td data-is="process">
                    <code>{process}</code>
                  </td>
                  <td>
                    <span class={`state is-${state}`}>
                      <Glyph state={state} label="" />
                      {says}
                    </span>
                  </td>
                  <td class="num" data-is="running">
                    {running} of {concurrency}
                  </td>
                  <td class="num" data-is="attempts">
                    {grouped(count('attempts'))}
                  </td>
                  <td class="num" data-is="ok after retry">
                    {percent(count('successAfterRetry') / settled)}
                  </td>
                  <td class="num" data-is="parked">
                    {percent(count('parked') / settled)}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      )}
    </div>
  );
}

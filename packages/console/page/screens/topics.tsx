import { grouped, inWords, many, sentence, span } from '../format.ts';
import { Ago } from '../parts/ago.tsx';
import { ControlList } from '../parts/control-list.tsx';
import { Glyph } from '../parts/glyph.tsx';
import { Empty, Trouble } from '../parts/quiet.tsx';
import { doesFlow, obstacle, type TopicState, topicWord } from '../topics/topic-state.ts';
import { useAnswer } from '../use-answer.ts';

const columns = [
  ['ready', 'ready'],
  ['delayed', 'delayed'],
  ['behind', 'behind'],
  ['held', 'held'],
  ['leased', 'in hand'],
  ['suspect', 'suspect'],
] as const;

/** All topics: how many events wait in each, and what stops them. */
export function Topics() {
  const asked = useAnswer('GET /topics', {}, 2000);
  const topics = asked.answer?.items;
  return (
    <section class="view" aria-labelledby="topics-title">
      <header>
        <div>
          <h1 id="topics-title" tabIndex={-1}>
            {topics ? headline(topics) : 'Topics'}
          </h1>
          <p>{topics && summary(topics)}</p>
        </div>
      </header>
      <Trouble answered={asked} />
      {topics?.length === 0 && (
        <div class="sheet">
          <Empty title="There is no topic yet.">
            A topic is here once a process has declared it, published to it or consumes it.
          </Empty>
        </div>
      )}
      {topics && topics.length > 0 && <TopicTable topics={topics} />}
      <div class="two">
        <Processes />
        <div class="sheet">
          <header>
            <h2>Controls in force</h2>
          </header>
          <div class="body">
            <ControlList
              controls={topics?.flatMap(({ controls }) => controls) ?? []}
              isNamed
              again={asked.again}
            />
          </div>
        </div>
      </div>
    </section>
  );
}

function headline(topics: readonly TopicState[]): string {
  const flowing = topics.filter(doesFlow).length;
  const all = topics.length;
  if (all === 0) return 'There is no topic yet.';
  if (all === 1) return flowing === 1 ? 'The one topic flows.' : 'The one topic does not flow.';
  if (flowing === all) return `All ${inWords(all)} topics flow.`;
  const some = flowing === 0 ? 'None' : sentence(inWords(flowing));
  return `${some} of ${inWords(all)} topics ${flowing < 2 ? 'flows' : 'flow'}.`;
}

function summary(topics: readonly TopicState[]): string {
  const held = topics.flatMap((topic) => obstacle(topic) ?? []);
  if (held.length > 0) return `${held.join('; ')}.`;
  const waiting = topics.reduce((sum, { counts }) => sum + counts.ready + counts.delayed, 0);
  if (waiting === 0) return 'Everything that was published is handled.';
  return `${many(waiting, 'event')} ${waiting === 1 ? 'waits' : 'wait'} for their turn, and nothing is in the way.`;
}

function TopicTable({ topics }: { readonly topics: readonly TopicState[] }) {
  return (
    <div class="sheet scroll">
      <table class="cards">
        <thead>
          <tr>
            <th>topic</th>
            {columns.map(([, says]) => (
              <th key={says} class="num">
                {says}
              </th>
            ))}
            <th class="num">parked</th>
            <th class="num">oldest due</th>
            <th class="num">next due</th>
            <th>consumers</th>
          </tr>
        </thead>
        <tbody>
          {topics.map((topic) => (
            <TopicRow key={topic.topic} topic={topic} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function TopicRow({ topic }: { readonly topic: TopicState }) {
  const { topic: name, counts, parked, oldestReadyMs, nextDueInMs, consumers } = topic;
  const { state, says } = topicWord(topic);
  const link = `/topics/${encodeURIComponent(name)}`;
  return (
    <tr>
      <td class="whole">
        <a href={link}>
          <b>{name}</b>
        </a>
        <span class="two-line">{[...new Set(consumers.map((each) => each.name))].join(', ')}</span>
      </td>
      {columns.map(([each, word]) => (
        <td key={each} class={counts[each] === 0 ? 'num zero' : 'num'} data-is={word}>
          <a href={`${link}?state=${each}`}>{grouped(counts[each])}</a>
        </td>
      ))}
      <td class={parked === 0 ? 'num zero' : 'num'} data-is="parked">
        <a href={`/parked?topic=${encodeURIComponent(name)}`}>{grouped(parked)}</a>
      </td>
      <td class="nowrap num" data-is="oldest due">
        {counts.ready === 0 ? '–' : span(oldestReadyMs)}
      </td>
      <td class="nowrap num" data-is="next due">
        {nextDueInMs === undefined ? '–' : nextDueInMs === 0 ? 'now' : span(nextDueInMs)}
      </td>
      <td>
        <span class={`state is-${state}`}>
          <Glyph state={state} label="" />
          {says}
        </span>
      </td>
    </tr>
  );
}

/** Only processes that report to this store are listed. */
function Processes() {
  const asked = useAnswer('GET /processes', {}, 4000);
  const consumers = useAnswer('GET /consumers', {}, 4000).answer?.items ?? [];
  const processes = asked.answer?.items;
  return (
    <div class="sheet scroll">
      <header>
        <h2>Processes</h2>
        <span class="small">those that have reported within 10 s</span>
      </header>
      <Trouble answered={asked} />
      {processes?.length === 0 && (
        <div class="body">
          <p class="quiet small">
            None reports. Call <code>joinFleet</code> in each process, and its consumers and policies are
            here.
          </p>
        </div>
      )}
      {processes && processes.length > 0 && (
        <table class="cards">
          <thead>
            <tr>
              <th>process</th>
              <th>version</th>
              <th>consumes</th>
              <th class="num">policies</th>
              <th class="num">runs since</th>
              <th class="num">heard</th>
            </tr>
          </thead>
          <tbody>
            {processes.map(({ id, service, host, pid, version, startedAt, heardAt, policies, leftOut }) => {
              const own = consumers.filter(({ process }) => process === `${service}@${host} (${pid})`);
              return (
                <tr key={id}>
                  <td class="whole">
                    <b>{service}</b> <span class="two-line mono">{`${host}/${pid}`}</span>
                  </td>
                  <td data-is="version">{version}</td>
                  <td data-is="consumes">
                    {own.map(({ name, topic }) => (
                      <a key={name} href={`/topics/${encodeURIComponent(topic)}`}>
                        {name}{' '}
                      </a>
                    ))}
                    {leftOut > 0 && <span class="quiet">and {leftOut} that did not fit into its report</span>}
                  </td>
                  <td class="num" data-is="policies">
                    <a href="/policies">{policies}</a>
                  </td>
                  <td class="num nowrap" data-is="runs since">
                    <Ago at={startedAt} />
                  </td>
                  <td class="num nowrap" data-is="heard">
                    <Ago at={heardAt} />
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

import type { AnswerOf } from '../../src/api/routes.ts';
import { type AssemblySummary, assemblyLooks } from '../assemblies/assembly-look.ts';
import { grouped, inWords, sentence, span } from '../format.ts';
import { storeNow } from '../live.ts';
import { ActButton } from '../parts/act-dialog.tsx';
import { Ago } from '../parts/ago.tsx';
import { ControlList } from '../parts/control-list.tsx';
import { Glyph } from '../parts/glyph.tsx';
import { PartMissing } from '../parts/part-missing.tsx';
import { Empty, Trouble } from '../parts/quiet.tsx';
import { session } from '../session.ts';
import { TopicActDialog } from '../topics/topic-act-dialog.tsx';
import { useAnswer } from '../use-answer.ts';
import { useQuery } from '../use-query.ts';

type AssembliesAnswer = AnswerOf<'GET /assemblies'>;
const states = ['waiting', 'running', 'parked', 'done', 'stopped'] as const;

/** All assemblies (work of several steps): by program, by error, and as a list. */
export function Assemblies() {
  return session.value?.parts.assemblies === false ? (
    <PartMissing title="Assemblies" part="assemblies" code="assemblies: assemblies({ engine, programs: [] })">
      Programs whose steps survive a restart would be here: where each is, what parked it, and what its
      customer sees.
    </PartMissing>
  ) : (
    <Known />
  );
}

function Known() {
  const { query, href, go, replace } = useQuery();
  const { state, name, tenant, key, group, cursor } = query;
  const words = { name, tenant, key, group, cursor };
  const asked = useAnswer(
    'GET /assemblies',
    { query: { limit: 50, ...words, state: states.find((each) => each === state) } },
    3000,
  );
  const controls = useAnswer('GET /controls', {}, 4000);
  const { answer } = asked;
  const held = controls.answer?.items.filter(({ about }) => about.startsWith('assembly/')) ?? [];
  const act = query.act === 'pause' || query.act === 'quarantine' ? query.act : undefined;
  return (
    <section class="view" aria-labelledby="assemblies-title">
      <header>
        <div>
          <h1 id="assemblies-title" tabIndex={-1}>
            {answer ? headline(answer) : 'Assemblies'}
          </h1>
          <p>{answer && summary(answer)}</p>
        </div>
      </header>
      <Trouble answered={asked} />
      {answer && (
        <>
          <div class="two">
            <div class="stack">
              <Programs answer={answer} act={(which, program) => go({ act: which, program })} />
              {answer.groups.length > 0 && <Groups answer={answer} />}
            </div>
            <div class="sheet">
              <header>
                <h2>Controls in force</h2>
              </header>
              <div class="body">
                <ControlList controls={held} isNamed again={controls.again} />
              </div>
            </div>
          </div>
          <div class="sheet scroll">
            <header>
              <h2>Assemblies</h2>
              <span class="small">those that were accepted last stand first</span>
            </header>
            <div class="body chips">
              <nav class="segments" aria-label="State">
                {['', ...states].map((each) => (
                  <a
                    key={each}
                    class="btn tiny"
                    href={href({ state: each, cursor: undefined })}
                    aria-current={(state ?? '') === each ? 'true' : undefined}
                  >
                    {each === '' ? 'all' : each}
                  </a>
                ))}
              </nav>
              {(['name', 'tenant', 'key', 'group'] as const).map(
                (word) =>
                  query[word] && (
                    <span key={word} class="chip">
                      <b>{word}</b> {query[word]}{' '}
                      <a href={href({ [word]: undefined, cursor: undefined })} aria-label={`Remove ${word}`}>
                        ×
                      </a>
                    </span>
                  ),
              )}
            </div>
            <AssemblyTable items={answer.items} />
            {(answer.cursor || cursor) && (
              <footer>
                {cursor && <a href={href({ cursor: undefined })}>From the beginning</a>}
                {answer.cursor && <a href={href({ cursor: answer.cursor })}>More</a>}
              </footer>
            )}
          </div>
        </>
      )}
      {act && query.program && (
        <TopicActDialog
          name={act}
          topic={`assembly/${query.program}`}
          again={controls.again}
          close={() => replace({ act: undefined, program: undefined })}
        />
      )}
    </section>
  );
}

function total(answer: AssembliesAnswer, state: (typeof states)[number]): number {
  return answer.counts.reduce((sum, each) => sum + each[state], 0);
}

function headline(answer: AssembliesAnswer): string {
  const active = total(answer, 'waiting') + total(answer, 'running');
  const parked = total(answer, 'parked');
  const under = active === 0 ? 'No assembly is under way' : `${grouped(active)} under way`;
  if (parked === 0) return `${under}, none needs you.`;
  return `${under}, ${parked <= 12 ? inWords(parked) : grouped(parked)} ${parked === 1 ? 'needs' : 'need'} you.`;
}

function summary(answer: AssembliesAnswer): string {
  const [largest] = answer.groups;
  if (largest) return `Most of them: ${largest.message}.`.replace('..', '.');
  return `${sentence(grouped(total(answer, 'done')))} are done, ${grouped(total(answer, 'stopped'))} were stopped.`;
}

function Programs({
  answer,
  act,
}: {
  readonly answer: AssembliesAnswer;
  readonly act: (which: string, program: string) => void;
}) {
  if (answer.counts.length === 0)
    return (
      <div class="sheet">
        <Empty title="No assembly has been accepted yet.">
          Once a program begins one, it is counted here.
        </Empty>
      </div>
    );
  return (
    <div class="sheet scroll">
      <table class="cards">
        <thead>
          <tr>
            <th>program</th>
            {states.map((state) => (
              <th key={state} class="num">
                {state}
              </th>
            ))}
            <th>
              <span class="unseen">acts</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {answer.counts.map((each) => (
            <tr key={`${each.name} ${each.version}`}>
              <td class="whole">
                <a href={`/assemblies?name=${encodeURIComponent(each.name)}`}>
                  <b>{each.name}</b>
                </a>
                <span class="two-line">version {each.version}</span>
              </td>
              {states.map((state) => (
                <td key={state} class={each[state] === 0 ? 'num zero' : 'num'} data-is={state}>
                  <a href={`/assemblies?name=${encodeURIComponent(each.name)}&state=${state}`}>
                    {grouped(each[state])}
                  </a>
                </td>
              ))}
              <td class="whole">
                <span class="acts end">
                  <ActButton isTiny onClick={() => act('pause', each.name)}>
                    Pause…
                  </ActButton>
                  <ActButton isTiny onClick={() => act('quarantine', each.name)}>
                    Quarantine…
                  </ActButton>
                </span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Parked assemblies (set aside for a person), grouped by errors that have the same cause. */
function Groups({ answer: { groups } }: { readonly answer: AssembliesAnswer }) {
  return (
    <div class="sheet scroll">
      <header>
        <h2>Parked, by what parked them</h2>
      </header>
      <table class="cards">
        <tbody>
          {groups.map(({ name, because, fingerprint, count, latestId, message }) => (
            <tr key={`${name} ${because} ${fingerprint}`}>
              <td class="num">
                <a
                  href={
                    fingerprint === undefined
                      ? `/assemblies?name=${encodeURIComponent(name)}&state=parked`
                      : `/assemblies?group=${encodeURIComponent(fingerprint)}`
                  }
                >
                  <b>{grouped(count)}</b>
                </a>
              </td>
              <td class="whole">
                {message}
                <span class="two-line">
                  {name} · <code>{because}</code> · latest{' '}
                  <a href={`/assemblies/${encodeURIComponent(latestId)}`}>{latestId}</a>
                </span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function AssemblyTable({ items }: { readonly items: readonly AssemblySummary[] }) {
  if (items.length === 0) return <Empty title="No assembly fits this filter." />;
  return (
    <table class="cards">
      <thead>
        <tr>
          <th>tracking</th>
          <th>state</th>
          <th>tenant</th>
          <th class="num">accepted</th>
          <th class="num">for</th>
          <th class="num">patience</th>
          <th>says</th>
        </tr>
      </thead>
      <tbody>
        {items.map((item) => {
          const look = assemblyLooks[item.state];
          return (
            <tr key={item.id}>
              <td class="whole">
                <a href={`/assemblies/${encodeURIComponent(item.id)}`}>
                  <b class="mono">{item.id}</b>
                </a>
                <span class="two-line">{item.name}</span>
              </td>
              <td>
                <span class={`state is-${look}`}>
                  <Glyph state={look} label="" />
                  {item.isStopping ? 'stopping' : item.state}
                </span>
              </td>
              <td data-is="tenant">{item.tenant}</td>
              <td class="num nowrap" data-is="accepted">
                <Ago at={item.acceptedAt} />
              </td>
              <td class="num nowrap" data-is="for">
                {span((item.endedAt ?? storeNow()) - item.acceptedAt)}
              </td>
              <td class="num nowrap" data-is="patience">
                {item.endedAt !== undefined || item.expiresAt === undefined
                  ? '–'
                  : item.expiresAt > storeNow()
                    ? `${span(item.expiresAt - storeNow())} left`
                    : 'ended'}
              </td>
              <td class="whole soft">{item.says}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

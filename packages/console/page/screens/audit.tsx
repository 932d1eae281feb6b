import type { AnswerOf } from '../../src/api/routes.ts';
import { ask } from '../api.ts';
import { grouped, many, shortId } from '../format.ts';
import { ActButton, ActDialog, CommandLine } from '../parts/act-dialog.tsx';
import { Ago } from '../parts/ago.tsx';
import { Empty, Trouble } from '../parts/quiet.tsx';
import { shellWord } from '../shell-word.ts';
import { tell } from '../toast.tsx';
import { useAnswer } from '../use-answer.ts';
import { useQuery } from '../use-query.ts';

type Entry = AnswerOf<'GET /audit'>['items'][number];
const filters = ['who', 'what', 'of'] as const;

/** The audit log: who did what, and why. Some acts can be undone from here. */
export function Audit() {
  const { query, href, go, replace } = useQuery();
  const { who, what, of, from, to, cursor } = query;
  const asked = useAnswer('GET /audit', { query: { limit: 50, who, what, of, from, to, cursor } }, 4000);
  const { answer } = asked;
  const undone = answer?.items.find(({ id }) => id === query.undo);
  const words = filters.filter((word) => query[word]);
  const flags = words.map((word) => ` --${word} ${shellWord(query[word]!)}`).join('');
  return (
    <section class="view" aria-labelledby="audit-title">
      <header>
        <div>
          <h1 id="audit-title" tabIndex={-1}>
            Who did what, and why.
          </h1>
          <p>{answer && summary(answer.items)}</p>
        </div>
      </header>
      <form
        key={words.map((word) => query[word]).join()}
        class="chips filter"
        onSubmit={(event) => {
          event.preventDefault();
          const given = new FormData(event.currentTarget);
          const value = (word: string) => String(given.get(word) ?? '').trim();
          go({ who: value('who'), what: value('what'), of: value('of'), cursor: undefined });
        }}
      >
        <label class="field">
          <span>Who</span>
          <input class="input short" name="who" defaultValue={who ?? ''} />
        </label>
        <label class="field">
          <span>What</span>
          <input class="input short" name="what" placeholder="discard" defaultValue={what ?? ''} />
        </label>
        <label class="field">
          <span>Of</span>
          <input class="input" name="of" placeholder="topic:orders" defaultValue={of ?? ''} />
        </label>
        <button type="submit" class="btn">
          Filter
        </button>
        {words.length > 0 && <a href="/audit">Show all</a>}
      </form>
      <Trouble answered={asked} />
      {answer?.items.length === 0 && (
        <div class="sheet">
          <Empty title="No act is on record.">
            {words.length > 0
              ? 'Nobody has done this here.'
              : 'Every act of a person, a rule or retention would be here, stored before it was answered.'}
          </Empty>
        </div>
      )}
      {answer && answer.items.length > 0 && (
        <div class="sheet scroll">
          <table class="cards">
            <thead>
              <tr>
                <th>when</th>
                <th>who</th>
                <th>what</th>
                <th>of what</th>
                <th>why</th>
                <th>
                  <span class="unseen">acts</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {answer.items.map((entry) => (
                <EntryRow key={entry.id} entry={entry} undo={() => go({ undo: entry.id })} />
              ))}
            </tbody>
          </table>
          <footer>
            {cursor && <a href={href({ cursor: undefined })}>The latest</a>}
            {answer.cursor && <a href={href({ cursor: answer.cursor })}>Earlier</a>}
            <CommandLine command={`holdfast audit${flags}`} />
          </footer>
        </div>
      )}
      {undone && (
        <ActDialog
          title={`Undo ${undone.what}`}
          verb="Undo"
          command={`holdfast audit --undo ${shellWord(undone.id)}`}
          close={() => replace({ undo: undefined })}
          act={async (why, key) => {
            await ask('POST /audit/:id/undo', {
              path: { id: undone.id },
              body: { why },
              headers: { 'idempotency-key': key },
            });
            asked.again();
            tell('Undone.');
          }}
        >
          <p>
            {undone.who} did this <Ago at={undone.at} />: “{undone.why}”. Undone, things are as they were
            before
            {undone.count > undone.subjects.length ? `, for ${many(undone.count, 'event')}` : ''}.
          </p>
        </ActDialog>
      )}
    </section>
  );
}

function summary(items: readonly Entry[]): string {
  const count = items.filter(({ canUndo }) => canUndo).length;
  const can =
    count === 0 ? 'None of these can be undone.' : `${grouped(count)} of these can still be undone.`;
  return `Every act of a person, a rule or retention, stored before it was answered. ${can}`;
}

function EntryRow({ entry, undo }: { readonly entry: Entry; readonly undo: () => void }) {
  const { at, who, what, subjects, count, why, canUndo, undoneBy, undoes } = entry;
  return (
    <tr>
      <td class="nowrap">
        <Ago at={at} />
      </td>
      <td data-is="who">
        <a href={`/audit?who=${encodeURIComponent(who)}`}>{who}</a>
      </td>
      <td>
        <a href={`/audit?what=${encodeURIComponent(what)}`}>
          <code>{what}</code>
        </a>
      </td>
      <td class="whole">
        {count > subjects.length && `${many(count, 'event')}: `}
        {subjects
          .filter((subject) => !subject.startsWith('control:'))
          .slice(0, 3)
          .map((subject, index) => (
            <span key={subject}>
              {index > 0 && ', '}
              <Subject subject={subject} />
            </span>
          ))}
        {subjects.length > 4 && ` and ${subjects.length - 3} more`}
        {undoes !== undefined && <span class="two-line">undoes {shortId(undoes)}</span>}
      </td>
      <td class="whole soft">{why}</td>
      <td class="num">
        {canUndo ? (
          <ActButton isTiny onClick={undo}>
            Undo…
          </ActButton>
        ) : (
          undoneBy !== undefined && <span class="quiet">undone</span>
        )}
      </td>
    </tr>
  );
}

const places: Readonly<Record<string, string>> = {
  event: '/parked/',
  operation: '/replays/',
  topic: '/topics/',
  policy: '/policies/',
  assembly: '/assemblies/',
};

/** What an act (such as a pause) applied to, for example a topic. It is shown as a link to its screen. */
function Subject({ subject }: { readonly subject: string }) {
  const at = subject.indexOf(':');
  const kind = subject.slice(0, at);
  const name = subject.slice(at + 1);
  const program =
    kind === 'topic' && name.startsWith('assembly/') ? name.slice('assembly/'.length) : undefined;
  const place = places[kind];
  const shown = kind === 'event' || kind === 'operation' ? shortId(name) : name;
  if (program !== undefined) return <a href={`/assemblies?name=${encodeURIComponent(program)}`}>{program}</a>;
  if (kind === 'gateway') return <a href="/gateway">gateway {name}</a>;
  if (place === undefined) return <>{`${kind} ${name}`}</>;
  return (
    <a href={`${place}${encodeURIComponent(name)}`}>
      {kind} {shown}
    </a>
  );
}

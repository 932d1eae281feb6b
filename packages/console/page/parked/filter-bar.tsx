import { useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import { grouped } from '../format.ts';
import { storeNow } from '../live.ts';
import { useAnswer } from '../use-answer.ts';
import {
  type Grouping,
  groupings,
  type Lot,
  propertyWords,
  statuses,
  withFilter,
  withoutWord,
  withWords,
} from './lot-url.ts';

/** Status, filters and grouping are query parameters of the URL. */
export function FilterBar({
  lot,
  counts,
}: {
  readonly lot: Lot;
  readonly counts: Readonly<Record<string, number>> | undefined;
}) {
  const { url, route } = useLocation();
  return (
    <div class="chips" role="group" aria-label="Filter">
      <nav class="segments" aria-label="Status">
        {statuses.map((status) => (
          <a
            key={status}
            class="btn tiny"
            aria-current={lot.status === status ? 'true' : undefined}
            href={withFilter(url, { status: status === 'parked' ? undefined : status })}
          >
            {status[0]!.toUpperCase() + status.slice(1)} {counts && grouped(counts[status] ?? 0)}
          </a>
        ))}
      </nav>
      <nav class="segments" aria-label="View">
        <a
          class="btn tiny"
          aria-current={lot.view === 'groups' ? 'true' : undefined}
          href={withFilter(url, { view: undefined })}
        >
          Groups
        </a>
        <a
          class="btn tiny"
          aria-current={lot.view === 'events' ? 'true' : undefined}
          href={withFilter(url, { view: 'events' })}
        >
          Events
        </a>
      </nav>
      {lot.view === 'groups' && (
        <label class="chip">
          <b>by</b>
          <select
            aria-label="Group by"
            value={lot.by}
            onChange={(event) => {
              const by = event.currentTarget.value as Grouping;
              route(withFilter(url, { by: by === 'error' ? undefined : by }));
            }}
          >
            {groupings.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
      )}
      {lot.words.map(([name, value]) => (
        <span class="chip" key={`${name}=${value}`}>
          <b>{name.startsWith('-') ? `not ${name.slice(1)}` : name}</b>
          <span class="cut">{shownValue(name, value)}</span>
          <a class="remove" aria-label={`Remove ${name} ${value}`} href={withoutWord(url, name, value)}>
            ×
          </a>
        </span>
      ))}
      <AddWord lot={lot} />
    </div>
  );
}

function shownValue(name: string, value: string): string {
  if (name !== 'from' && name !== 'to') return value;
  const at = new Date(Number(value));
  const isToday = at.toDateString() === new Date(storeNow()).toDateString();
  return isToday ? at.toLocaleTimeString() : at.toLocaleString();
}

const addable = [...propertyWords, 'text', 'since'] as const;

/** The form that adds a filter. It suggests values that occur. */
function AddWord({ lot }: { readonly lot: Lot }) {
  const { url, route } = useLocation();
  const [name, setName] = useState<(typeof addable)[number]>('tenant');
  const [value, setValue] = useState('');
  const [isNot, setNot] = useState(false);
  const [isWanted, setWanted] = useState(false);
  const [wrong, setWrong] = useState('');
  const isProperty = name !== 'text' && name !== 'since';
  const hasValues = isProperty && name !== 'header';
  const { answer } = useAnswer(
    'GET /parked/groups',
    isWanted && hasValues
      ? { query: { ...lot.filter, by: name === 'group' ? 'error' : name, limit: 20 } }
      : undefined,
  );
  return (
    <form
      class="add-word"
      onSubmit={(event) => {
        event.preventDefault();
        if (value.trim() === '') return;
        const added = addedWord(url, isNot && isProperty ? `-${name}` : name, value.trim());
        if (added.wrong !== undefined) return setWrong(added.wrong);
        setWrong('');
        setValue('');
        route(added.url!);
      }}
      onFocusIn={() => setWanted(true)}
    >
      <select
        aria-label="Filter by"
        value={name}
        onChange={(event) => setName(event.currentTarget.value as typeof name)}
      >
        {addable.map((each) => (
          <option key={each}>{each}</option>
        ))}
      </select>
      {isProperty && (
        <select
          aria-label="Is or is not"
          value={isNot ? 'is not' : 'is'}
          onChange={(event) => setNot(event.currentTarget.value === 'is not')}
        >
          <option>is</option>
          <option>is not</option>
        </select>
      )}
      <input
        id="add-word"
        class="input"
        aria-label="Value"
        list="word-values"
        placeholder={name === 'header' ? 'name:value' : name === 'since' ? '6h' : 'value'}
        value={value}
        onInput={(event) => setValue(event.currentTarget.value)}
      />
      <datalist id="word-values">
        {hasValues &&
          answer?.items.map(
            (item) =>
              item.value !== undefined && (
                <option key={item.value} value={item.value}>
                  {item.reason ?? ''} {grouped(item.count)}
                </option>
              ),
          )}
      </datalist>
      <button type="submit" class="btn tiny">
        Add <kbd>f</kbd>
      </button>
      {wrong !== '' && (
        <span class="is-parked small" role="alert">
          {wrong}
        </span>
      )}
    </form>
  );
}

const sinceUnits: Readonly<Record<string, number>> = { m: 6e4, h: 36e5, d: 864e5 };

function addedWord(url: string, name: string, value: string): { url?: string; wrong?: string } {
  if (name === 'since') {
    const [, count, unit] = /^(\d+)\s*([mhd])$/.exec(value) ?? [];
    if (count === undefined || unit === undefined)
      return { wrong: `Since: expected a time such as 30m, 6h or 2d, got "${value}".` };
    return {
      url: withFilter(url, { from: String(Math.round(storeNow() - Number(count) * sinceUnits[unit]!)) }),
    };
  }
  if (name === 'text') return { url: withFilter(url, { text: value }) };
  if (name.endsWith('header') && !/^[^:]+:/.test(value))
    return { wrong: `Header: expected name:value, got "${value}".` };
  const known = new URL(url, location.origin).searchParams.getAll(name);
  return { url: withWords(withFilter(url, {}), { [name]: [...new Set([...known, value])] }) };
}

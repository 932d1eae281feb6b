import { useRef, useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import { grouped, many, percent, span } from '../format.ts';
import { useKeys } from '../keys.ts';
import { storeNow } from '../live.ts';
import { Differences, SeenBefore } from '../parked/differences.tsx';
import { EventTable } from '../parked/event-table.tsx';
import { FilterBar } from '../parked/filter-bar.tsx';
import { GroupTable } from '../parked/group-table.tsx';
import {
  chosenFilter,
  everything,
  type Lot,
  lotOf,
  statuses,
  withFilter,
  withWords,
} from '../parked/lot-url.ts';
import { ParkHistogram } from '../parked/park-histogram.tsx';
import { useRowKeys } from '../parked/row-keys.ts';
import { LotDialogs, SelectionBar } from '../parked/selection.tsx';
import { Empty, Trouble } from '../parts/quiet.tsx';
import { useAnswer } from '../use-answer.ts';

const refreshMs = 5000;
const pageSize = 50;

/** Parked events, grouped by error. They can be replayed, discarded or kept longer. */
export function ParkingLot() {
  const { url, route } = useLocation();
  const lot = lotOf(url);
  const { filter, view, by, cursor, picks } = lot;
  const list = useRef<HTMLDivElement>(null);
  const [isOver, setOver] = useState(false);
  // Do not refresh the list while the user works in it, because rows must not move then.
  const everyMs = isOver || picks.length > 0 || lot.dialog !== undefined ? 0 : refreshMs;
  const page = { limit: pageSize, ...(cursor !== undefined && { cursor }) };
  const groups = useAnswer(
    'GET /parked/groups',
    view === 'groups' ? { query: { ...filter, ...page, by } } : undefined,
    everyMs,
  );
  const events = useAnswer(
    'GET /parked',
    view === 'events' ? { query: { ...filter, ...page } } : undefined,
    everyMs,
  );
  const isSearch = filter.text !== undefined;
  const states = useAnswer(
    'GET /parked/groups',
    isSearch ? undefined : { query: { ...filter, status: [...statuses], by: 'status' } },
    refreshMs,
  );
  const histogram = useAnswer('GET /parked/histogram', isSearch ? undefined : { query: filter }, everyMs);
  const rules = useAnswer('GET /rules');
  const counts =
    states.answer && Object.fromEntries(states.answer.items.map(({ value, count }) => [value, count]));
  const total = counts ? (counts[lot.status] ?? 0) : events.answer?.count;
  const asked = view === 'groups' ? groups : events;
  const { answer } = asked;

  const pick = (value: string) => {
    const isPicked = picks.includes(value);
    const left = picks.filter((each) => each !== value && each !== everything);
    route(withWords(url, { pick: isPicked ? left : [...left, value] }), true);
  };
  const pickAll = () => {
    const isAll = picks.includes(everything);
    route(withWords(url, { pick: isAll ? undefined : everything }), true);
  };
  useRowKeys(list, pick, pickAll);
  useKeys({
    f: { says: 'add a filter', run: () => document.querySelector<HTMLElement>('#add-word')?.focus() },
  });

  const chosen = chosenFilter(lot);
  const described = describe(lot, groups.answer?.items ?? []);
  const single = picks.length === 1 && by === 'error' && view === 'groups' && picks[0] !== everything;
  const inGroup = lot.words.filter(([name]) => name === 'group');
  const groupShown = single ? picks[0] : inGroup.length === 1 ? inGroup[0]![1] : undefined;
  const compared = chosen && !picks.includes(everything) ? chosen : lot.words.length > 0 ? filter : undefined;
  const frozen = listedCount(lot, groups.answer?.items, events.answer?.count);
  const news = everyMs === 0 && total !== undefined && frozen !== undefined ? total - frozen : 0;
  return (
    <section class="view" aria-labelledby="lot-title">
      <header>
        <div>
          <h1 id="lot-title" tabIndex={-1}>
            {headline(lot, total, groups.answer)}
          </h1>
          <p>{summary(lot, total, groups.answer?.items ?? [])}</p>
        </div>
        <div class="acts">
          <a class="btn" href={withWords(url, { do: 'rules' })}>
            Rules <span class="quiet">{rules.answer?.items.length ?? ''}</span>
          </a>
        </div>
      </header>
      <FilterBar lot={lot} counts={counts} />
      {isSearch && <OtherMeanings text={String(filter.text)} />}
      {histogram.answer && histogram.answer.buckets.length > 0 && (
        <ParkHistogram histogram={histogram.answer} />
      )}
      <Trouble answered={asked} />
      <div class={compared ? 'two' : undefined}>
        <div
          class="sheet"
          ref={list}
          onPointerEnter={() => setOver(true)}
          onPointerLeave={() => setOver(false)}
          aria-busy={!answer}
        >
          {news !== 0 && (
            <p class="news">
              {news > 0 ? `${grouped(news)} new` : `${grouped(-news)} fewer`} ·{' '}
              <button type="button" class="btn tiny" onClick={asked.again}>
                Show
              </button>
            </p>
          )}
          <div class="scroll">
            {view === 'groups' && groups.answer && groups.answer.items.length > 0 && (
              <GroupTable lot={lot} groups={groups.answer.items} pick={pick} />
            )}
            {view === 'events' && events.answer && events.answer.items.length > 0 && (
              <EventTable lot={lot} events={events.answer.items} pick={pick} />
            )}
          </div>
          {answer?.items.length === 0 && <NothingHere lot={lot} looked={answer.looked} />}
          {answer && answer.items.length > 0 && (
            <SelectionBar lot={lot} total={total} described={described} pickAll={pickAll} />
          )}
          {answer && (answer.cursor !== undefined || cursor !== undefined || answer.looked !== undefined) && (
            <nav class="pages" aria-label="Pages">
              {answer.looked !== undefined && (
                <span>
                  {`Looked through ${grouped(answer.looked)} events and found ${grouped(answer.items.length)}; there are more to look through.`}
                </span>
              )}
              {cursor !== undefined && (
                <a href={withWords(url, { cursor: undefined, pick: undefined })}>First page</a>
              )}
              {answer.cursor !== undefined && (
                <a rel="next" href={withWords(url, { cursor: answer.cursor, pick: undefined })}>
                  {answer.looked !== undefined
                    ? 'Look further'
                    : view === 'events'
                      ? 'Older'
                      : 'Smaller groups'}
                </a>
              )}
            </nav>
          )}
        </div>
        {compared && (
          <div class="stack">
            <Differences filter={compared} of={described} />
            {groupShown !== undefined && (
              <SeenBefore
                group={groupShown}
                firstAt={groups.answer?.items.find(({ value }) => value === groupShown)?.firstAt}
              />
            )}
          </div>
        )}
      </div>
      <LotDialogs
        lot={lot}
        described={described}
        rules={rules}
        done={() => {
          asked.again();
          states.again();
          rules.again();
        }}
      />
    </section>
  );
}

/** A group goes on if its latest event was parked within this time (ms). */
const growsWithinMs = 6e4;

type Groups = { readonly items: readonly Group[]; readonly cursor?: string | undefined };
type Group = {
  readonly value?: string | undefined;
  readonly count: number;
  readonly reason?: string | undefined;
  readonly firstAt?: number | undefined;
  readonly lastAt?: number | undefined;
};

function headline({ status, view, words }: Lot, total: number | undefined, groups: Groups | undefined) {
  if (total === undefined) return view === 'events' ? 'Events' : 'Parking lot';
  const isFiltered = words.length > 0;
  if (total === 0)
    return isFiltered
      ? 'No event matches.'
      : status === 'parked'
        ? 'Nothing is parked.'
        : `Nothing is ${status}.`;
  const how =
    groups && view === 'groups'
      ? `, in ${groups.cursor === undefined ? '' : 'more than '}${many(groups.items.length, 'group')}`
      : '';
  const verb = total === 1 ? 'is' : 'are';
  return `${many(total, isFiltered ? 'matching event' : 'event')} ${verb} ${status}${how}.`;
}

function summary({ by, status }: Lot, total: number | undefined, items: readonly Group[]) {
  const first = items[0];
  if (by !== 'error' || status !== 'parked' || !first || !total) return '';
  const share = percent(first.count / total, 0);
  const began = first.firstAt === undefined ? '' : `, that began ${span(storeNow() - first.firstAt)} ago`;
  const goesOn =
    first.lastAt !== undefined && storeNow() - first.lastAt <= growsWithinMs ? ' and goes on' : '';
  return `${share} of them are one error, ${first.reason}${began}${goesOn}.`;
}

function describe({ picks, view, by, words }: Lot, items: readonly Group[]): string {
  const only = picks.length === 1 ? picks[0]! : undefined;
  if (only === everything) return words.length > 0 ? 'that match the filter' : 'of the whole parking lot';
  if (view === 'events')
    return only === undefined ? (picks.length > 0 ? 'chosen by hand' : 'this list') : 'chosen by hand';
  if (only !== undefined)
    return `of ${by === 'error' ? (items.find(({ value }) => value === only)?.reason ?? only) : `${by} ${only}`}`;
  return picks.length > 0 ? `of ${picks.length} groups` : 'this list';
}

/** The total number of events in the list; `undefined`: unknown. */
function listedCount({ view, cursor }: Lot, groups: readonly Group[] | undefined, count: number | undefined) {
  if (cursor !== undefined) return undefined;
  if (view === 'events') return count;
  if (!groups || groups.length >= pageSize) return undefined;
  return groups.reduce((sum, each) => sum + each.count, 0);
}

/** Offers the other meanings of a search text: it may be an id or a tenant. */
function OtherMeanings({ text }: { readonly text: string }) {
  const { url } = useLocation();
  const isWord = !/\s/.test(text);
  const all = { status: [...statuses], limit: 1 };
  const byId = useAnswer('GET /parked', isWord ? { query: { ...all, id: text } } : undefined);
  const byTenant = useAnswer('GET /parked', isWord ? { query: { ...all, tenant: text } } : undefined);
  const tenants = byTenant.answer?.count ?? 0;
  if (!byId.answer?.items.length && tenants === 0) return null;
  return (
    <p class="banner">
      {byId.answer?.items.map(({ id }) => (
        <span key={id}>
          <a href={`/parked/${encodeURIComponent(id)}`}>
            <code>{id}</code>
          </a>{' '}
          is the id of an event.
        </span>
      ))}
      {tenants > 0 && (
        <span>
          <a href={withFilter(url, { text: undefined, tenant: text })}>{many(tenants, 'event')}</a> of a
          tenant of this name.
        </span>
      )}
    </p>
  );
}

function NothingHere({ lot, looked }: { readonly lot: Lot; readonly looked: number | undefined }) {
  const { url } = useLocation();
  if (looked !== undefined)
    return <Empty title="Nothing found so far.">Look further, or narrow the time.</Empty>;
  if (lot.words.length > 0)
    return (
      <Empty title="No event matches.">
        <a href={lot.view === 'events' ? '/parked?view=events' : '/parked'}>Show all that are parked</a>
      </Empty>
    );
  return (
    <Empty title={lot.status === 'parked' ? 'Nothing is parked.' : `Nothing is ${lot.status}.`}>
      When a consumer gives an event up, it is grouped here by its error.{' '}
      <a href="/topics">Look at what waits</a> ·{' '}
      <a href={withFilter(url, { status: 'resolved' })}>Show resolved</a>
    </Empty>
  );
}

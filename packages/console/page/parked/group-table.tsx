import { useLocation } from 'preact-iso';
import type { AnswerOf } from '../../src/api/routes.ts';
import { grouped, span } from '../format.ts';
import { Ago } from '../parts/ago.tsx';
import { everything, type Lot, withFilter, wordOf } from './lot-url.ts';

type Group = AnswerOf<'GET /parked/groups'>['items'][number];

export function GroupTable({
  lot,
  groups,
  pick,
}: {
  readonly lot: Lot;
  readonly groups: readonly Group[];
  readonly pick: (value: string) => void;
}) {
  const { url } = useLocation();
  const word = wordOf(lot.by);
  const isError = lot.by === 'error';
  const isPicked = (value: string) => lot.picks.includes(value) || lot.picks.includes(everything);
  return (
    <table class="cards groups">
      <caption class="unseen">Groups of events</caption>
      <thead>
        <tr>
          <th>
            <span class="unseen">choose</span>
          </th>
          <th>{isError ? 'error' : lot.by}</th>
          <th class="num">events</th>
          {isError && (
            <>
              <th class="num">last 5 min</th>
              <th>stopped</th>
              <th>last</th>
              <th class="num">kept</th>
            </>
          )}
        </tr>
      </thead>
      <tbody>
        {groups.map(
          ({ value, count, reason, message, firstAt, lastAt, topics, recent, stop, removedInMs }) => {
            const name = reason ?? value ?? `no ${lot.by}`;
            const href = withFilter(url, { [word]: value ?? '', view: 'events', by: undefined });
            return (
              <tr key={value ?? ''} aria-selected={value !== undefined && isPicked(value)}>
                <td class="choose">
                  {value !== undefined && (
                    <input
                      type="checkbox"
                      aria-label={`Choose ${name} ${isError ? value : ''}`}
                      checked={isPicked(value)}
                      onChange={() => pick(value)}
                    />
                  )}
                </td>
                <td class="whole">
                  <a href={href} data-row={value ?? ''}>
                    <b>{name}</b> {message}
                  </a>
                  {isError && (
                    <span class="two-line">
                      <code>{value}</code>
                      {topics && ` · ${listed(topics)}`}
                    </span>
                  )}
                </td>
                <td class="num" data-is="events">
                  <a class="plain" href={href}>
                    <b>{grouped(count)}</b>
                  </a>
                </td>
                {isError && (
                  <>
                    <td class={recent ? 'num' : 'num zero'} data-is="last 5 min">
                      {recent ? `+${grouped(recent)}` : '0'}
                    </td>
                    <td data-is="stopped">
                      <code>{stop}</code>
                    </td>
                    <td class="nowrap" data-is="last">
                      {lastAt !== undefined && <Ago at={lastAt} />}
                      {firstAt !== undefined && (
                        <span class="two-line">
                          first <Ago at={firstAt} />
                        </span>
                      )}
                    </td>
                    <td class="num nowrap" data-is="kept">
                      {removedInMs !== undefined && span(removedInMs)}
                    </td>
                  </>
                )}
              </tr>
            );
          },
        )}
      </tbody>
    </table>
  );
}

function listed(topics: readonly string[]): string {
  return topics.length > 3 ? `${topics.slice(0, 2).join(', ')}, +${topics.length - 2}` : topics.join(', ');
}

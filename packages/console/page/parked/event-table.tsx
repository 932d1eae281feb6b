import type { AnswerOf } from '../../src/api/routes.ts';
import { shortId, span } from '../format.ts';
import { Ago } from '../parts/ago.tsx';
import { everything, type Lot } from './lot-url.ts';

type Summary = AnswerOf<'GET /parked'>['items'][number];

export function EventTable({
  lot,
  events,
  pick,
}: {
  readonly lot: Lot;
  readonly events: readonly Summary[];
  readonly pick: (id: string) => void;
}) {
  const isPicked = (id: string) => lot.picks.includes(id) || lot.picks.includes(everything);
  return (
    <table class="cards events">
      <caption class="unseen">Events</caption>
      <thead>
        <tr>
          <th>
            <span class="unseen">choose</span>
          </th>
          <th>event</th>
          <th>error</th>
          <th>tenant</th>
          <th>topic</th>
          <th class="num">attempts</th>
          <th>parked</th>
          <th class="num">kept</th>
        </tr>
      </thead>
      <tbody>
        {events.map((event) => (
          <tr key={event.id} aria-selected={isPicked(event.id)}>
            <td class="choose">
              <input
                type="checkbox"
                aria-label={`Choose ${event.id}`}
                checked={isPicked(event.id)}
                onChange={() => pick(event.id)}
              />
            </td>
            <td class="whole">
              <a href={`/parked/${encodeURIComponent(event.id)}`} data-row={event.id}>
                <b>{event.type ?? event.topic}</b> {event.key ?? ''}
              </a>
              <span class="two-line">
                <code title={event.id}>{shortId(event.id)}</code>
                {event.parkings > 1 && ` · parked ${event.parkings} times`}
                {event.edited && ' · edited'}
                {event.operation !== undefined && ' · in a replay'}
              </span>
            </td>
            <td class="whole error" data-is="error">
              {event.reason}: {event.message}
              <span class="two-line">
                <code>{event.stop}</code>
              </span>
            </td>
            <td class={event.tenant === undefined ? 'zero' : ''} data-is="tenant">
              {event.tenant ?? '–'}
            </td>
            <td data-is="topic">{event.topic}</td>
            <td class="num" data-is="attempts">
              {event.finalAttempt}
            </td>
            <td class="nowrap" data-is="parked">
              <Ago at={event.parkedAt} />
            </td>
            <td class="num nowrap" data-is="kept">
              {span(event.removedInMs)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

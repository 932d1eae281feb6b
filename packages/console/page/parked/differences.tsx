import { useLocation } from 'preact-iso';
import { grouped, percent } from '../format.ts';
import { Ago } from '../parts/ago.tsx';
import { Trouble } from '../parts/quiet.tsx';
import { useAnswer } from '../use-answer.ts';
import { type FilterWords, statuses, withFilter } from './lot-url.ts';

/** Shows what these events have in common, and other events of their topics do not have. */
export function Differences({ filter, of }: { readonly filter: FilterWords; readonly of: string }) {
  const { url } = useLocation();
  const asked = useAnswer('GET /parked/differences', { query: filter });
  const items = asked.answer?.items;
  return (
    <div class="sheet">
      <header>
        <h2>What is different</h2>
        <span class="small">{of} against the rest of the topic</span>
      </header>
      <div class="body">
        <Trouble answered={asked} />
        {items?.length === 0 && (
          <p class="small quiet">
            Nothing stands out: these events look like the others of their topic, or there are no others.
          </p>
        )}
        <ol class="differs">
          {items?.map(({ by, value, share, otherShare, count }) => {
            const isHeader = by.startsWith('header ');
            const name = isHeader ? by.slice(7) : by;
            const word = isHeader ? { header: `${name}:${value}` } : { [by]: value ?? '' };
            return (
              <li key={`${by}${value}`}>
                <span class="says">
                  <span class="cut">
                    <span class="quiet">{isHeader ? 'header' : by}</span>{' '}
                    <a href={withFilter(url, { ...word, view: 'events' })}>
                      <code>{isHeader ? `${name}: ${value}` : (value ?? 'none')}</code>
                    </a>
                  </span>
                  <b>{percent(share, 0)}</b>
                </span>
                <svg viewBox="0 0 100 14" preserveAspectRatio="none" aria-hidden="true">
                  <rect class="f-well" width={100} height={14} />
                  <rect class="f-parked" width={share * 100} height={8} />
                  <rect class="f-faint" y={9} width={otherShare * 100} height={5} />
                </svg>
                <small class="quiet">
                  {grouped(count)} of these, {percent(otherShare, 0)} of the rest
                </small>
              </li>
            );
          })}
        </ol>
      </div>
      <footer>
        <span>Counted over all of them, not a sample.</span>
      </footer>
    </div>
  );
}

/** Shows what happened to earlier events with the same error. */
export function SeenBefore({
  group,
  firstAt,
}: {
  readonly group: string;
  readonly firstAt: number | undefined;
}) {
  const { answer } = useAnswer('GET /parked/groups', {
    query: { by: 'status', group, status: [...statuses] },
  });
  const past = (answer?.items ?? []).filter(({ value }) => value !== 'parked');
  return (
    <div class="sheet">
      <header>
        <h2>Has it been seen before?</h2>
      </header>
      <div class="body small">
        {answer && past.length === 0 ? (
          <p>
            No: nothing else of this error is on record.{' '}
            {firstAt !== undefined && (
              <>
                First <Ago at={firstAt} />.
              </>
            )}
          </p>
        ) : (
          <ul>
            {past.map(({ value, count }) => (
              <li key={value}>
                <a href={`/parked?group=${encodeURIComponent(group)}&status=${value}`}>{grouped(count)}</a>{' '}
                {value}
              </li>
            ))}
          </ul>
        )}
      </div>
    </div>
  );
}

import { useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import type { AnswerOf } from '../../src/api/routes.ts';
import { grouped, many, span } from '../format.ts';
import { useWidth } from '../parts/use-width.ts';
import { withFilter } from './lot-url.ts';

const height = 46;
const floor = 45;
const fewest = 30;

/** A chart of when events were parked. A drag, two clicks, or Enter twice select a time range. */
export function ParkHistogram({ histogram }: { readonly histogram: AnswerOf<'GET /parked/histogram'> }) {
  const { url, route } = useLocation();
  const [box, width] = useWidth();
  const [mark, setMark] = useState<number>();
  const [at, setAt] = useState<number>();
  const { bucketMs, now, buckets } = histogram;
  const query = new URL(url, location.origin).searchParams;
  const end = Math.min(Number(query.get('to') ?? now), now);
  // Start a few buckets before the first event, to show that no events were parked before.
  const begin = Number(query.get('from') ?? Math.min(buckets[0]?.at ?? now, end - fewest * bucketMs));
  const first = Math.floor(begin / bucketMs) * bucketMs;
  const count = Math.max(1, Math.min(600, Math.ceil((end - first) / bucketMs)));
  const counts = new Map(buckets.map((bucket) => [bucket.at, bucket.count]));
  const values = Array.from({ length: count }, (_, index) => counts.get(first + index * bucketMs) ?? 0);
  const most = Math.max(1, ...values);
  const each = width / count;
  const timeOf = (index: number) => new Date(first + index * bucketMs);
  const indexAt = (event: PointerEvent & { readonly currentTarget: SVGSVGElement }) => {
    const { left } = event.currentTarget.getBoundingClientRect();
    return Math.min(count - 1, Math.max(0, Math.floor((event.clientX - left) / each)));
  };
  const narrow = (one: number, other: number) => {
    setMark(undefined);
    const [from, to] = [Math.min(one, other), Math.max(one, other) + 1];
    route(withFilter(url, { from: String(first + from * bucketMs), to: String(first + to * bucketMs) }));
  };
  const choose = (index: number) => (mark === undefined ? setMark(index) : narrow(mark, index));
  const peak = values.indexOf(Math.max(...values));
  const says = `Parked, by ${span(bucketMs)}, from ${timeOf(0).toLocaleString()}: at most ${grouped(most)}, at ${timeOf(peak).toLocaleString()}`;
  const ranged =
    mark !== undefined && at !== undefined ? [Math.min(mark, at), Math.max(mark, at)] : undefined;
  const [a, b] = ranged ?? [0, 0];
  return (
    <div class="sheet">
      <header>
        <h2>Parked, by {span(bucketMs)}</h2>
        <span class="small" aria-live="polite">
          {at === undefined
            ? 'drag, or click twice, to narrow'
            : `${timeOf(at).toLocaleString()}: ${many(values[at] ?? 0, 'event')}${mark === undefined ? '' : ' · click again to narrow'}`}
        </span>
      </header>
      <div class="body" ref={box}>
        <svg
          class="hist"
          viewBox={`0 0 ${width} ${height}`}
          role="img"
          aria-label={says}
          tabindex={0}
          onKeyDown={(event) => {
            const by = event.key === 'ArrowLeft' ? -1 : event.key === 'ArrowRight' ? 1 : 0;
            if (by !== 0) setAt(Math.min(count - 1, Math.max(0, (at ?? count - 1) + by)));
            else if (event.key === 'Home') setAt(0);
            else if (event.key === 'End') setAt(count - 1);
            else if (event.key === 'Enter' || event.key === ' ') choose(at ?? count - 1);
            else if (event.key === 'Escape') setMark(undefined);
            else return;
            event.preventDefault();
          }}
          onPointerMove={(event) => setAt(indexAt(event))}
          onPointerLeave={() => setAt(undefined)}
          onPointerDown={(event) => choose(indexAt(event))}
          onPointerUp={(event) => {
            const index = indexAt(event);
            if (mark !== undefined && index !== mark) narrow(mark, index);
          }}
        >
          {ranged && <rect class="range" x={a! * each} y={0} width={(b! - a! + 1) * each} height={height} />}
          {values.map(
            (value, index) =>
              value > 0 && (
                <rect
                  key={index}
                  class="f-parked"
                  x={index * each + Math.min(1, each * 0.1)}
                  y={floor - Math.max(2, (value / most) * (floor - 2))}
                  width={Math.max(1.5, Math.min(28, each * 0.86))}
                  height={Math.max(2, (value / most) * (floor - 2))}
                />
              ),
          )}
          {at !== undefined && (
            <rect class="at" x={at * each} y={0} width={Math.max(1, each)} height={height} />
          )}
          <rect class="f-faint" x={0} y={floor} width={width} height={1} />
        </svg>
        <div class="ends quiet">
          {[0, 1 / 3, 2 / 3, 1].map((share) => (
            <span key={share}>{shortTime(first + share * count * bucketMs, count * bucketMs)}</span>
          ))}
        </div>
      </div>
    </div>
  );
}

function shortTime(at: number, spanMs: number): string {
  const date = new Date(at);
  if (spanMs > 2 * 864e5) return date.toLocaleDateString([], { day: 'numeric', month: 'short' });
  const isSeconds = spanMs < 36e4;
  return date.toLocaleTimeString([], {
    ...{ hour: '2-digit', minute: '2-digit', hourCycle: 'h23' },
    ...(isSeconds && { second: '2-digit' }),
  });
}

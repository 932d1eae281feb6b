import { useEffect, useRef, useState } from 'preact/hooks';
import type { State } from './glyph.tsx';
import { Glyph } from './glyph.tsx';

export interface ChartSeries {
  readonly name: string;
  readonly says: string;
  readonly state: State;
  readonly points: readonly (number | null)[];
}

const height = 180;
const left = 44;
const right = 8;
const top = 10;
const bottom = 22;

/** A stacked chart of counts per second over time. People can also read it as a table. */
export function StackedChart({
  now,
  stepMs,
  series,
}: {
  readonly now: number;
  readonly stepMs: number;
  readonly series: readonly ChartSeries[];
}) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(640);
  const [at, setAt] = useState<number>();
  useEffect(() => {
    const watcher = new ResizeObserver(([entry]) => setWidth(Math.max(240, entry!.contentRect.width)));
    watcher.observe(box.current!);
    return () => watcher.disconnect();
  }, []);
  const count = series[0]?.points.length ?? 0;
  const perSecond = (value: number | null | undefined) => ((value ?? 0) * 1000) / stepMs;
  const totals = Array.from({ length: count }, (_, index) =>
    series.reduce((sum, { points }) => sum + perSecond(points[index]), 0),
  );
  const most = niceCeiling(Math.max(0.1, ...totals));
  const x = (index: number) => left + (index / Math.max(1, count - 1)) * (width - left - right);
  const y = (value: number) => top + (1 - value / most) * (height - top - bottom);
  const timeOf = (index: number) => new Date(now - (count - 1 - index) * stepMs);
  const below = new Array<number>(count).fill(0);
  const areas = series.map(({ name, state, points }) => {
    const lower = below.map((value, index) => `${x(index).toFixed(1)} ${y(value).toFixed(1)}`).toReversed();
    for (let index = 0; index < count; index++) below[index]! += perSecond(points[index]);
    const upper = below.map((value, index) => `${x(index).toFixed(1)} ${y(value).toFixed(1)}`);
    return { name, state, path: `M${upper.join('L')}L${lower.join('L')}Z` };
  });
  const latest = totals.at(-1) ?? 0;
  const says = `${series.map((each) => each.says).join(', ')}, a second. Now ${latest.toFixed(2)} a second in all, at most ${Math.max(0, ...totals).toFixed(2)}.`;
  const move = (by: number) => setAt(Math.min(count - 1, Math.max(0, (at ?? count - 1) + by)));
  return (
    <div ref={box}>
      <svg
        class="chart"
        viewBox={`0 0 ${width} ${height}`}
        width={width}
        height={height}
        role="img"
        aria-label={says}
        tabindex={0}
        onKeyDown={(event) => {
          if (event.key === 'ArrowLeft') move(-1);
          if (event.key === 'ArrowRight') move(1);
        }}
        onPointerMove={(event) => {
          const place = event.currentTarget.getBoundingClientRect();
          const share = (event.clientX - place.left - left) / (width - left - right);
          setAt(Math.min(count - 1, Math.max(0, Math.round(share * (count - 1)))));
        }}
        onPointerLeave={() => setAt(undefined)}
      >
        {[0, 0.5, 1].map((share) => (
          <g key={share}>
            <line class="grid" x1={left} x2={width - right} y1={y(most * share)} y2={y(most * share)} />
            <text x={left - 6} y={y(most * share) + 4} text-anchor="end">
              {(most * share).toFixed(most < 10 ? 1 : 0)}
            </text>
          </g>
        ))}
        {areas.map(({ name, state, path }) => (
          <path key={name} class={`f-${state}`} d={path} />
        ))}
        {[0, 0.5, 1].map((share) => {
          const index = Math.round(share * (count - 1));
          const anchor = share === 0 ? 'start' : share === 1 ? 'end' : 'middle';
          return (
            <text key={share} x={x(index)} y={height - 6} text-anchor={anchor}>
              {timeOf(index).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' })}
            </text>
          );
        })}
        {at !== undefined && <line class="mark" x1={x(at)} x2={x(at)} y1={top} y2={height - bottom} />}
      </svg>
      <p class="small quiet" aria-live="polite">
        {at === undefined
          ? 'Point at it, or use the arrow keys, to read values.'
          : `${timeOf(at).toLocaleTimeString()}: ${series.map((each) => `${each.says} ${perSecond(each.points[at]).toFixed(2)}`).join(', ')}`}
      </p>
      <ul class="keys small">
        {series.map(({ name, state, says: each }) => (
          <li key={name}>
            <Glyph state={state} label="" />
            {each}
          </li>
        ))}
      </ul>
      <details class="small">
        <summary>as a table</summary>
        <div class="scroll">
          <table>
            <thead>
              <tr>
                <th>time</th>
                {series.map(({ name, says: each }) => (
                  <th key={name} class="num">
                    {each}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {totals
                .map((_, index) => index)
                .filter((index) => index % 12 === 0)
                .map((index) => (
                  <tr key={index}>
                    <td>{timeOf(index).toLocaleTimeString()}</td>
                    {series.map(({ name, points }) => (
                      <td key={name} class="num">
                        {points[index] === null ? '–' : perSecond(points[index]).toFixed(2)}
                      </td>
                    ))}
                  </tr>
                ))}
            </tbody>
          </table>
        </div>
      </details>
    </div>
  );
}

/** Rounds up to 1, 2 or 5 times a power of ten. */
export function niceCeiling(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((each) => each * power).find((each) => each >= value) ?? value;
}

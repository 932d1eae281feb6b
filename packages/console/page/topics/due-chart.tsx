import { grouped, span } from '../format.ts';
import { useWidth } from '../parts/use-width.ts';

const height = 126;
const floor = 104;
const tallest = 84;

/** A chart of when events are due. Its scale is logarithmic: two events are visible beside a thousand. */
export function DueChart({
  bounds,
  counts,
}: {
  readonly bounds: readonly number[];
  readonly counts: readonly number[];
}) {
  const [box, width] = useWidth();
  const most = Math.max(1, ...counts);
  const each = width / Math.max(1, counts.length);
  const bars = counts.map((count, index) => ({
    count,
    label: labelOf(bounds, index),
    tall: count === 0 ? 0 : Math.max(3, (Math.log(count + 1) / Math.log(most + 1)) * tallest),
    x: index * each,
  }));
  const said = bars.map(({ count, label }) => `${grouped(count)} ${label}`).join(', ');
  return (
    <div ref={box}>
      <svg
        class="chart fit"
        viewBox={`0 0 ${width} ${height}`}
        role="img"
        aria-label={`When events are due: ${said}. Heights are logarithmic.`}
      >
        <line class="axis" x1={0} x2={width} y1={floor + 0.5} y2={floor + 0.5} />
        {bars.map(({ count, label, tall, x }, index) => (
          <g key={label}>
            <rect
              class={index === 0 ? 'f-waiting' : 'f-retrying'}
              x={x + each * 0.14}
              y={floor - tall}
              width={each * 0.72}
              height={tall}
              rx={2}
            />
            <text class="strong" x={x + each / 2} y={floor - tall - 6} text-anchor="middle">
              {grouped(count)}
            </text>
            <text x={x + each / 2} y={floor + 16} text-anchor="middle">
              {label}
            </text>
          </g>
        ))}
      </svg>
    </div>
  );
}

function labelOf(bounds: readonly number[], index: number): string {
  if (index === 0) return 'now';
  return index === bounds.length ? 'later' : `≤ ${span(bounds[index]!)}`;
}

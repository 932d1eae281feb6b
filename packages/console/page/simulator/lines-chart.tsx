import { grouped } from '../format.ts';
import { niceCeiling } from '../parts/stacked-chart.tsx';
import { useWidth } from '../parts/use-width.ts';

interface Line {
  readonly name: string;
  readonly points: readonly number[];
}

const height = 150;
const left = 40;
const right = 8;
const top = 8;
const bottom = 20;

/** One figure for several policies over the simulated time. The lines differ by their dashes. */
export function LinesChart({ title, lines }: { readonly title: string; readonly lines: readonly Line[] }) {
  const [box, width] = useWidth();
  const most = niceCeiling(Math.max(1, ...lines.flatMap(({ points }) => points)));
  const x = (index: number, count: number) =>
    left + (index / Math.max(1, count - 1)) * (width - left - right);
  const y = (value: number) => top + (1 - value / most) * (height - top - bottom);
  const says = lines
    .map(({ name, points }) => {
      const least = Math.min(...points);
      return `${name} from ${grouped(least)} to ${grouped(Math.max(...points))}, ${grouped(points.at(-1) ?? 0)} at the end`;
    })
    .join('; ');
  return (
    <div ref={box}>
      <svg class="chart fit" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`${title}: ${says}.`}>
        {[0, 0.5, 1].map((share) => (
          <g key={share}>
            <line class="grid" x1={left} x2={width - right} y1={y(most * share)} y2={y(most * share)} />
            <text x={left - 6} y={y(most * share) + 4} text-anchor="end">
              {grouped(most * share)}
            </text>
          </g>
        ))}
        {lines.map(({ name, points }, index) => (
          <path
            key={name}
            class={`line d-${Math.min(3, index)}`}
            d={`M${points.map((value, at) => `${x(at, points.length).toFixed(1)} ${y(value).toFixed(1)}`).join('L')}`}
          />
        ))}
        <text x={left} y={height - 5}>
          beginning
        </text>
        <text x={width - right} y={height - 5} text-anchor="end">
          end
        </text>
      </svg>
      <ul class="keys small">
        {lines.map(({ name }, index) => (
          <li key={name}>
            <svg class="chart key" viewBox="0 0 24 8" aria-hidden="true">
              <path class={`line d-${Math.min(3, index)}`} d="M0 4L24 4" />
            </svg>
            {name}
          </li>
        ))}
      </ul>
    </div>
  );
}

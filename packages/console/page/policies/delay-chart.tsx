import { span } from '../format.ts';
import { useWidth } from '../parts/use-width.ts';

interface Delay {
  readonly attempt: number;
  readonly leastMs: number;
  readonly mostMs: number;
}

const left = 74;
const right = 96;
const row = 24;

/** Shows the earliest and the latest start of each attempt, if every attempt fails immediately. */
export function DelayChart({ delays }: { readonly delays: readonly Delay[] }) {
  const [box, width] = useWidth(320);
  const begins = [{ attempt: 1, leastMs: 0, mostMs: 0 }];
  for (const { attempt, leastMs, mostMs } of delays) {
    const before = begins.at(-1)!;
    begins.push({
      attempt: attempt + 1,
      leastMs: before.leastMs + leastMs,
      mostMs: before.mostMs + mostMs,
    });
  }
  const most = Math.max(1, begins.at(-1)!.mostMs);
  const x = (ms: number) => left + (ms / most) * (width - left - right);
  const height = begins.length * row + 26;
  const text = ({ leastMs, mostMs }: Delay) =>
    mostMs === 0 ? 'at once' : leastMs === mostMs ? span(mostMs) : `${span(leastMs)} – ${span(mostMs)}`;
  const says = begins.map((each) => `attempt ${each.attempt} ${text(each)}`).join(', ');
  return (
    <div ref={box}>
      <svg
        class="chart fit"
        viewBox={`0 0 ${width} ${height}`}
        role="img"
        aria-label={`When attempts begin: ${says}`}
      >
        {begins.map((each, index) => (
          <g key={each.attempt}>
            <text x={left - 10} y={index * row + 17} text-anchor="end">
              attempt {each.attempt}
            </text>
            <rect
              class="range"
              x={x(each.leastMs)}
              y={index * row + 6}
              width={Math.max(2, x(each.mostMs) - x(each.leastMs))}
              height={13}
              rx={2}
            />
            <text x={x(each.mostMs) + 8} y={index * row + 17}>
              {text(each)}
            </text>
          </g>
        ))}
        <line class="axis" x1={left} x2={width - right} y1={height - 20.5} y2={height - 20.5} />
        {[0, 0.5, 1].map((share) => (
          <text key={share} x={x(most * share)} y={height - 5} text-anchor="middle">
            {span(most * share)}
          </text>
        ))}
      </svg>
    </div>
  );
}

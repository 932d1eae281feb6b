import type { State } from './glyph.tsx';

const width = 160;
const height = 28;

/** A small chart of a number over time. The axis starts at zero. Gaps are times without data. */
export function Sparkline({
  points,
  state,
  says,
}: {
  readonly points: readonly (number | null)[];
  readonly state?: State | undefined;
  readonly says: string;
}) {
  const most = Math.max(1e-9, ...points.map((point) => point ?? 0));
  const x = (index: number) => (index / Math.max(1, points.length - 1)) * width;
  const y = (value: number) => height - 2 - (value / most) * (height - 4);
  let path = '';
  let isDown = false;
  for (const [index, point] of points.entries()) {
    if (point !== null) path += `${isDown ? 'L' : 'M'}${x(index).toFixed(1)} ${y(point).toFixed(1)}`;
    isDown = point !== null;
  }
  return (
    <svg
      class={`spark is-${state ?? 'over'}`}
      viewBox={`0 0 ${width} ${height}`}
      role="img"
      aria-label={says}
    >
      <path
        d={path}
        fill="none"
        stroke="currentColor"
        stroke-width="1.5"
        vector-effect="non-scaling-stroke"
      />
    </svg>
  );
}

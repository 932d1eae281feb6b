import { span } from '../format.ts';
import { useWidth } from '../parts/use-width.ts';
import { breakerLook } from './policy-state.ts';

const height = 44;
const bar = 24;
const windowMs = 9e5;
const fills: Readonly<Record<string, string>> = {
  ok: 'f-quiet',
  retrying: 'f-retrying',
  refused: 'f-refused',
};

/** The states of a circuit breaker over the last 15 minutes. Before the console started, they are unknown. */
export function BreakerStrip({
  strip,
  now,
}: {
  readonly strip: readonly (readonly [number, string])[];
  readonly now: number;
}) {
  const [box, width] = useWidth();
  const from = now - windowMs;
  const x = (at: number) => Math.max(0, Math.min(1, (at - from) / windowMs)) * width;
  const parts = strip.map(([at, state], index) => ({
    at,
    look: breakerLook(state),
    x: x(at),
    width: Math.max(1.6, x(strip[index + 1]?.[0] ?? now) - x(at)),
  }));
  const openMs = strip.reduce(
    (sum, [at, state], index) =>
      sum + (state === 'open' ? Math.max(0, (strip[index + 1]?.[0] ?? now) - Math.max(from, at)) : 0),
    0,
  );
  const latest = parts.at(-1)?.look.says ?? 'not known';
  const says = `The breaker over the last 15 minutes: now ${latest}, ${openMs > 0 ? `open for ${span(openMs)} of them` : 'never open'}.`;
  const clock = (at: number) => new Date(at).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
  return (
    <div ref={box}>
      <svg class="chart fit" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={says}>
        <rect class="f-well" x={0} y={0} width={width} height={bar} />
        {parts.map((part) => (
          <rect
            key={part.at}
            class={fills[part.look.state] ?? 'f-quiet'}
            x={part.x}
            y={0}
            width={part.width}
            height={bar}
          />
        ))}
        {[0, 0.5, 1].map((share) => (
          <text
            key={share}
            x={share * width}
            y={height - 5}
            text-anchor={share === 0 ? 'start' : share === 1 ? 'end' : 'middle'}
          >
            {clock(from + share * windowMs)}
          </text>
        ))}
      </svg>
    </div>
  );
}

import type { ComponentChildren } from 'preact';

export type State = 'ok' | 'waiting' | 'retrying' | 'parked' | 'refused' | 'over';

/** Defines the shapes of the states once. `Glyph` and `Tag` use them by name. */
export function GlyphShapes() {
  return (
    <svg hidden aria-hidden="true">
      <symbol id="g-ok" viewBox="0 0 12 12">
        <circle cx="6" cy="6" r="4.6" fill="currentColor" />
      </symbol>
      <symbol id="g-waiting" viewBox="0 0 12 12">
        <circle cx="6" cy="6" r="3.9" fill="none" stroke="currentColor" stroke-width="2" />
      </symbol>
      <symbol id="g-retrying" viewBox="0 0 12 12">
        <path d="M9.9 7.2a4.1 4.1 0 1 1-.7-3.7" fill="none" stroke="currentColor" stroke-width="1.9" />
        <path d="M11.3.9v4.2H7.1z" fill="currentColor" />
      </symbol>
      <symbol id="g-parked" viewBox="0 0 12 12">
        <rect x="1.4" y="1.4" width="9.2" height="9.2" rx="1.2" fill="currentColor" />
      </symbol>
      <symbol id="g-refused" viewBox="0 0 12 12">
        <circle cx="6" cy="6" r="4.3" fill="none" stroke="currentColor" stroke-width="1.9" />
        <path d="M3 9l6-6" stroke="currentColor" stroke-width="1.9" />
      </symbol>
      <symbol id="g-over" viewBox="0 0 12 12">
        <path d="M2 6h8" stroke="currentColor" stroke-width="2.2" />
      </symbol>
    </svg>
  );
}

/** Screen readers read the label. Use an empty label if the page shows the same word beside the shape. */
export function Glyph({ state, label = state }: { readonly state: State; readonly label?: string }) {
  const named =
    label === '' ? ({ 'aria-hidden': true } as const) : ({ role: 'img', 'aria-label': label } as const);
  return (
    <span class={`is-${state}`}>
      <svg class="glyph" {...named}>
        <use href={`#g-${state}`} />
      </svg>
    </span>
  );
}

export function Tag({ state, children }: { readonly state: State; readonly children: ComponentChildren }) {
  return (
    <span class={`state tag is-${state}`}>
      <svg class="glyph" aria-hidden="true">
        <use href={`#g-${state}`} />
      </svg>
      {children}
    </span>
  );
}

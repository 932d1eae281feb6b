import type { ComponentChildren } from 'preact';
import type { Answered } from '../use-answer.ts';

/** The text in place of a list that is empty or cannot be loaded. */
export function Empty({
  title,
  children,
}: {
  readonly title: string;
  readonly children?: ComponentChildren;
}) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children && <p>{children}</p>}
    </div>
  );
}

/** Says that a request is slow or has failed. The last answer stays on the screen. */
export function Trouble({
  answered,
}: {
  readonly answered: Pick<Answered<never>, 'error' | 'isSlow' | 'again'>;
}) {
  const { error, isSlow, again } = answered;
  if (error)
    return (
      <p class="trouble" role="alert">
        {error.message}{' '}
        <button type="button" class="btn tiny" onClick={again}>
          Ask again
        </button>
      </p>
    );
  return isSlow ? <p class="trouble quiet">The store is being asked…</p> : null;
}

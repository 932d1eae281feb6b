import type { ComponentChildren } from 'preact';
import type { Answered } from '../use-answer.ts';

/** What a list shows when there is nothing, or when it cannot be asked for. */
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

/** Says that an answer is slow, old or refused. The old answer stays where it is. */
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

import type { ComponentChildren } from 'preact';
import { Empty } from './quiet.tsx';

/** Replaces a screen whose option was not given to `openConsole`. It says how to enable the screen. */
export function PartMissing({
  title,
  part,
  code,
  children,
}: {
  readonly title: string;
  readonly part: string;
  /** The option of `openConsole` that enables the screen. */
  readonly code: string;
  readonly children: ComponentChildren;
}) {
  return (
    <section class="view" aria-labelledby="missing-title">
      <header>
        <div>
          <h1 id="missing-title" tabIndex={-1}>
            {title}
          </h1>
        </div>
      </header>
      <div class="sheet">
        <Empty title={`This console was started without ${part}.`}>
          {children} To have it, start the console with <code>{code}</code>.
        </Empty>
      </div>
    </section>
  );
}

import { useLocation } from 'preact-iso';

/** Shown for a path that no screen has. */
export function Missing() {
  const { path } = useLocation();
  return (
    <section class="view">
      <header>
        <div>
          <h1 tabIndex={-1}>There is no such screen.</h1>
          <p>
            <code>{path}</code> leads nowhere. <a href="/">The overview</a> has everything that needs you.
          </p>
        </div>
      </header>
    </section>
  );
}

import { useLocation } from 'preact-iso';

/** A path that is no screen. */
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

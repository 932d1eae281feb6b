import { Icon, onPhones, places } from '../frame/places.tsx';
import { switchTheme } from '../frame/top-bar.tsx';
import { signOut } from '../session.ts';

/** The screens that have no tab at the bottom on phones. */
export function More() {
  return (
    <section class="view" aria-labelledby="more-title">
      <header>
        <div>
          <h1 id="more-title" tabIndex={-1}>
            Everything else
          </h1>
        </div>
      </header>
      <div class="sheet">
        <ul class="rows">
          {places
            .filter(({ path }) => !onPhones.includes(path))
            .map((place) => (
              <li key={place.path}>
                <a href={place.path} target={place.isOutside ? '_blank' : undefined}>
                  <Icon place={place} />
                  <span>
                    {place.name}
                    <small>{place.says}</small>
                  </span>
                </a>
              </li>
            ))}
        </ul>
      </div>
      <div class="acts">
        <button type="button" class="btn" onClick={switchTheme}>
          Theme
        </button>
        <button type="button" class="btn" onClick={() => void signOut()}>
          Sign out
        </button>
      </div>
    </section>
  );
}

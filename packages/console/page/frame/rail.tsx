import { useLocation } from 'preact-iso';
import { overview } from '../live.ts';
import { session, signOut } from '../session.ts';
import { Badge, Icon, isAt, type Place, places } from './places.tsx';

export function Rail() {
  const { path } = useLocation();
  const store = overview.value?.store;
  const link = (place: Place) => (
    <li key={place.path}>
      <a
        href={place.path}
        target={place.isOutside ? '_blank' : undefined}
        aria-current={isAt(place, path) ? 'page' : undefined}
      >
        <Icon place={place} />
        {place.name}
        <Badge path={place.path} />
      </a>
    </li>
  );
  return (
    <nav class="rail" aria-label="Console">
      <a class="brand" href="/">
        <svg
          viewBox="0 0 22 22"
          fill="none"
          stroke="currentColor"
          stroke-width="1.7"
          stroke-linecap="round"
          aria-hidden="true"
        >
          <path d="M11 1.8c2.2 1.5 2.2 3 0 4.4-2 1.3-2 2.6 0 3.9" />
          <path d="M11 10c.3 4.5-4.6 3.2-6.5 9.2M11 10c.2 4.7-2 5-2.6 9.2M11 10c-.2 4.7 2 5 2.6 9.2M11 10c-.3 4.5 4.6 3.2 6.5 9.2" />
          <path d="M1.8 20.2h18.4" />
        </svg>
        Holdfast
      </a>
      <ul>{places.map(link)}</ul>
      <footer>
        {store && (
          <>
            <span>
              store <b>{store.name}</b>
            </span>
            <span>{`${store.engine}, survives ${survives[store.durability] ?? store.durability}`}</span>
          </>
        )}
        <span>
          {session.value?.who} · may {session.value?.role}
        </span>
        <button type="button" class="btn tiny bare" onClick={() => void signOut()}>
          Sign out
        </button>
      </footer>
    </nav>
  );
}

const survives: Readonly<Record<string, string>> = {
  none: 'nothing: it is in memory',
  process: 'a killed process',
  power: 'a power cut',
};

import { useLocation } from 'preact-iso';
import { Badge, Icon, isAt, onPhones, places } from './places.tsx';

/** The navigation on phones. It is at the bottom, where a thumb reaches it. */
export function Tabs() {
  const { path } = useLocation();
  const shown = places.filter((place) => onPhones.includes(place.path));
  const isElsewhere = !shown.some((place) => isAt(place, path));
  return (
    <nav class="tabs" aria-label="Console, short">
      {shown.map((place) => (
        <a key={place.path} href={place.path} aria-current={isAt(place, path) ? 'page' : undefined}>
          <Icon place={place} />
          {place.path === '/parked' ? 'Parked' : place.name}
          <Badge path={place.path} isShort />
        </a>
      ))}
      <a href="/more" aria-current={isElsewhere ? 'page' : undefined}>
        <svg viewBox="0 0 16 16" aria-hidden="true">
          <path d="M3.5 8h.01M8 8h.01M12.5 8h.01" />
        </svg>
        More
      </a>
    </nav>
  );
}

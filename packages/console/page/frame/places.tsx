import type { ComponentChildren } from 'preact';
import { grouped } from '../format.ts';
import { overview } from '../live.ts';

export interface Place {
  readonly path: string;
  readonly name: string;
  readonly icon: ComponentChildren;
  /** The list on phones shows this description. */
  readonly says: string;
  /** True: the link leads out of the console. It opens in a new tab, so that typed text is not lost. */
  readonly isOutside?: boolean;
}

export const places: readonly Place[] = [
  { path: '/', name: 'Overview', says: 'what needs you', icon: <path d="M1.5 8.5h3l2-5 3 9 2-4h3" /> },
  {
    path: '/parked',
    name: 'Parking lot',
    says: 'events that no retry helped',
    icon: (
      <>
        <rect x="2" y="2" width="12" height="12" rx="2" />
        <path d="M6.2 11.5v-7h2.3a2.1 2.1 0 0 1 0 4.2H6.2" />
      </>
    ),
  },
  {
    path: '/replays',
    name: 'Replays',
    says: 'what is published again',
    icon: (
      <>
        <path d="M13.5 8a5.5 5.5 0 1 1-1.7-4" />
        <path d="M13.6 1.6v2.9h-2.9" />
        <path d="M7 5.8 10.4 8 7 10.2z" />
      </>
    ),
  },
  {
    path: '/topics',
    name: 'Topics',
    says: 'what waits, and who takes it',
    icon: <path d="M2 4h12M2 8h8M2 12h10" />,
  },
  {
    path: '/policies',
    name: 'Policies',
    says: 'breakers, budgets, load',
    icon: (
      <>
        <circle cx="8" cy="8" r="6" />
        <circle cx="8" cy="8" r="2.5" />
      </>
    ),
  },
  {
    path: '/assemblies',
    name: 'Assemblies',
    says: 'work of many steps',
    icon: (
      <>
        <rect x="1.5" y="2" width="5" height="3.2" rx="1" />
        <rect x="5.5" y="6.4" width="5" height="3.2" rx="1" />
        <rect x="9.5" y="10.8" width="5" height="3.2" rx="1" />
      </>
    ),
  },
  {
    path: '/gateway',
    name: 'Gateway',
    says: 'upstreams and instances',
    icon: <path d="M6 2.5v11M10 2.5v11M1.5 8H6M10 8h4.5M12.5 6l2 2-2 2" />,
  },
  {
    path: '/simulator',
    name: 'Simulator',
    says: 'try a policy in a storm',
    icon: <path d="M1.5 10.5c2 0 2-5 4-5s2 7 4 7 2-9 5-9" />,
  },
  {
    path: '/audit',
    name: 'Audit',
    says: 'who did what, and why',
    icon: (
      <>
        <path d="M3.5 1.5h6l3 3v10h-9z" />
        <path d="M6 7.5h4M6 10.5h4" />
      </>
    ),
  },
  {
    path: '/help/',
    name: 'Help',
    says: 'guides and reference, in a new tab',
    isOutside: true,
    icon: (
      <>
        <circle cx="8" cy="8" r="6" />
        <path d="M6.2 6.3a1.9 1.9 0 1 1 2.7 1.8c-.6.3-.9.6-.9 1.3M8 11.6h.01" />
      </>
    ),
  },
];

/** The screens with a tab at the bottom on phones. "More" lists all other screens. */
export const onPhones: readonly string[] = ['/', '/parked', '/topics', '/policies'];

export function isAt(place: Place, path: string): boolean {
  return place.path === '/' ? path === '/' : path.startsWith(place.path);
}

export function Icon({ place }: { readonly place: Place }) {
  return (
    <svg viewBox="0 0 16 16" aria-hidden="true">
      {place.icon}
    </svg>
  );
}

/**
 * The badge beside the name of a screen: how many things need attention there. Phones show only the number.
 */
export function Badge({ path, isShort = false }: { readonly path: string; readonly isShort?: boolean }) {
  const badges = overview.value?.badges;
  if (!badges) return null;
  const badge = (state: string, count: number, word: string) =>
    count > 0 ? (
      <span class={`count is-${state}`}>{isShort ? short(count) : `${grouped(count)}${word}`}</span>
    ) : null;
  switch (path) {
    case '/parked':
      return badge('parked', badges.parked, '');
    case '/replays':
      return badge('waiting', badges.replays, ' running');
    case '/topics':
      return badge('waiting', badges.paused, ' paused');
    case '/policies':
      return badge('refused', badges.breakersOpen, ' open');
    default:
      return null;
  }
}

function short(count: number): string {
  return count < 1000 ? String(count) : `${(count / 1000).toFixed(1)}k`;
}

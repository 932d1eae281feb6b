import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';

/** What single keys do on the present screen, with a few words for the map of keys. */
export interface KeyAct {
  readonly says: string;
  run(): void;
}

export const areKeysOn = signal(localStorage.getItem('holdfast-keys') !== 'off');
export const keyActs = signal<Readonly<Record<string, KeyAct>>>({});

const places: Readonly<Record<string, string>> = {
  o: '/',
  p: '/parked',
  r: '/replays',
  t: '/topics',
  y: '/policies',
  a: '/assemblies',
  w: '/gateway',
  s: '/simulator',
  u: '/audit',
};
const sequenceMs = 1500;

/** Listens to single keys outside of fields: `g` and a letter go somewhere, the rest is of the screen. */
export function startKeys(go: (path: string) => void): () => void {
  let wentAt = -Infinity;
  const pressed = (event: KeyboardEvent) => {
    if (!areKeysOn.value || event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target as HTMLElement | null;
    if (target?.closest('input, textarea, select, [contenteditable], dialog')) return;
    const isSecond = performance.now() - wentAt < sequenceMs;
    wentAt = -Infinity;
    const place = isSecond ? places[event.key] : undefined;
    if (place !== undefined) {
      event.preventDefault();
      go(place);
    } else if (event.key === 'g') wentAt = performance.now();
    else {
      const act = keyActs.value[event.key];
      if (!act) return;
      event.preventDefault();
      act.run();
    }
  };
  document.addEventListener('keydown', pressed);
  return () => document.removeEventListener('keydown', pressed);
}

/** Adds keys while a part is shown. */
export function useKeys(acts: Readonly<Record<string, KeyAct>>): void {
  const names = Object.keys(acts).join(' ');
  useEffect(() => {
    keyActs.value = { ...keyActs.value, ...acts };
    return () => {
      const rest = { ...keyActs.value };
      for (const name of names.split(' ')) delete rest[name];
      keyActs.value = rest;
    };
  });
}

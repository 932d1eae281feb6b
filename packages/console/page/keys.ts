import { signal } from '@preact/signals';
import { useLayoutEffect } from 'preact/hooks';

/** The list of shortcuts shows `says`. */
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

/** Listens for keyboard shortcuts outside of input fields. The key `g` and then a letter open a screen. */
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

/** The shortcuts work while the component is shown, from its first frame on: a key that is shown is not ignored. */
export function useKeys(acts: Readonly<Record<string, KeyAct>>): void {
  const names = Object.keys(acts).join(' ');
  useLayoutEffect(() => {
    keyActs.value = { ...keyActs.value, ...acts };
    return () => {
      const rest = { ...keyActs.value };
      for (const name of names.split(' ')) delete rest[name];
      keyActs.value = rest;
    };
  });
}

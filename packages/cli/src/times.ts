import { spanText } from '@holdfast/events';
import type { Terminal } from './terminal.ts';

const steps = [
  [864e5, 'd'],
  [36e5, 'h'],
  [6e4, 'm'],
  [1e3, 's'],
] as const;

/** Rounds the time that is left: 59 minutes and 59 seconds become `1h`. */
export function spanLeft(ms: number): string {
  const [unitMs, unit] = steps.find(([each]) => ms >= 0.99 * each) ?? [1, 'ms'];
  return `${Math.round(Math.max(0, ms) / unitMs)}${unit}`;
}

/** A terminal shows how long ago it was, a pipe the date. `now` is the store's time in epoch ms. */
export function ago(epochMs: number, now: number, { columns }: Pick<Terminal, 'columns'>): string {
  if (columns === undefined) return date(epochMs);
  return now - epochMs < 1000 ? 'now' : `${spanText(now - epochMs)} ago`;
}

export function date(epochMs: number): string {
  return new Date(epochMs).toISOString();
}

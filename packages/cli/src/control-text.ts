import type { ActiveControl } from '@holdfast/contracts';
import { controlEffect } from '@holdfast/events';
import type { Terminal } from './terminal.ts';
import { ago, date, spanLeft } from './times.ts';

/** Example: `paused by ann 3m ago, for 7m more: a deploy`. */
export function controlText(
  { control, act, since, until }: ActiveControl,
  now: number,
  terminal: Pick<Terminal, 'columns'>,
): string {
  const at = terminal.columns === undefined ? 'at ' : '';
  const end = endOf(until, now, terminal);
  return `${controlEffect(control)} by ${act.who} ${at}${ago(since, now, terminal)}, ${end}: ${act.why}`;
}

export function endOf(
  until: number | undefined,
  now: number,
  { columns }: Pick<Terminal, 'columns'>,
): string {
  if (until === undefined) return 'without an end';
  return columns === undefined ? `until ${date(until)}` : `for ${spanLeft(until - now)} more`;
}

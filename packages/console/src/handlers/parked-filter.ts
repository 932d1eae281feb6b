import type { OneOf, ParkedFilter, ParkedProperties } from '@holdfast/contracts';
import type { Filter } from '../api/parked.ts';
import { Problem } from '../server/problem.ts';

const names = ['topic', 'type', 'key', 'tenant', 'reason', 'stop', 'consumer'] as const;

export function parkedFilter(words: Filter): ParkedFilter {
  const { id, status, replayedBy, from, to, text } = words;
  const wanted = propertiesOf(words, '');
  const not = propertiesOf(words, '-');
  return {
    ...wanted,
    ...(Object.keys(not).length > 0 && { not }),
    ...(id && { ids: id }),
    ...(status && { status }),
    ...(replayedBy !== undefined && { replayedBy }),
    ...(from !== undefined && { from }),
    ...(to !== undefined && { to }),
    ...(text !== undefined && text !== '' && { text }),
  };
}

function propertiesOf(words: Filter, sign: '' | '-'): ParkedProperties {
  const properties: Record<string, OneOf | Record<string, OneOf>> = {};
  for (const name of names) {
    const values = words[`${sign}${name}`];
    if (values) properties[name] = values;
  }
  const groups = words[`${sign}group`];
  if (groups) properties.fingerprint = groups;
  const headers = words[`${sign}header`];
  if (headers) properties.headers = Object.fromEntries(headers.map(headerOf));
  return properties;
}

function headerOf(text: string): [name: string, value: string] {
  const colon = text.indexOf(':');
  if (colon > 0) return [text.slice(0, colon), text.slice(colon + 1)];
  throw new Problem('bad-question', `Header: expected name:value, got "${text.slice(0, 100)}".`);
}

/** Returns a filter as text, with the same names as in the URL. Example: `topic=orders group=4f1d9ac0`. */
export function filterText(filter: ParkedFilter): string {
  return wordsOf(filter)
    .map(([name, value]) => `${name}=${/\s/.test(value) ? JSON.stringify(value) : value}`)
    .join(' ');
}

/** The flags of `holdfast dlq` that select the same events. */
export function filterFlags(filter: ParkedFilter): string {
  return wordsOf(filter)
    .map(([name, value]) => flagOf(name, value))
    .join(' ');
}

function flagOf(name: string, value: string): string {
  if (name === 'id') return quoted(value);
  if (name === 'from') return `--since ${new Date(Number(value)).toISOString()}`;
  if (name === 'to') return `--until ${new Date(Number(value)).toISOString()}`;
  if (name === 'replayedBy') return `--replayed-by ${quoted(value)}`;
  if (name === 'header') return `--header ${quoted(value.replace(':', '='))}`;
  if (name.startsWith('-')) {
    const property = name.slice(1);
    return `--not ${quoted(property === 'header' ? `header.${value.replace(':', '=')}` : `${property}=${value}`)}`;
  }
  return `--${name} ${quoted(value)}`;
}

/** Quotes a word of a terminal command, if the shell would change it. */
export function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

function wordsOf(filter: ParkedFilter): [name: string, value: string][] {
  const words = [...propertyWords(filter, ''), ...propertyWords(filter.not ?? {}, '-')];
  for (const id of filter.ids ?? []) words.push(['id', id]);
  for (const status of [filter.status ?? []].flat()) words.push(['status', status]);
  for (const name of ['replayedBy', 'from', 'to', 'text'] as const)
    if (filter[name] !== undefined) words.push([name, String(filter[name])]);
  return words;
}

function propertyWords(properties: ParkedProperties, sign: '' | '-'): [string, string][] {
  const words: [string, string][] = [];
  for (const name of [...names, 'fingerprint'] as const)
    for (const value of [properties[name] ?? []].flat())
      words.push([`${sign}${name === 'fingerprint' ? 'group' : name}`, value]);
  for (const [name, values] of Object.entries(properties.headers ?? {}))
    for (const value of [values].flat()) words.push([`${sign}header`, `${name}:${value}`]);
  return words;
}

import { stopSentences } from '../src/explain.ts';
import type { Field, Table } from '../src/fields.ts';
import { policy, stopReasons } from '../src/index.ts';
import { rules } from '../src/lint.ts';
import { fieldNotes } from '../src/policy/field-notes.ts';

/** Which fields each page is about. */
export const pages: Readonly<Record<string, readonly string[]>> = {
  retry: ['patience', 'attempts', 'retryOn', 'retryOnly', 'neverOn', 'respectServer'],
  backoff: ['backoff'],
  budget: ['budget'],
  breaker: ['breaker'],
  timeout: ['attemptTimeout'],
  bulkhead: ['bulkhead'],
  limiter: ['limiter'],
  throttle: ['throttle'],
  hedge: ['hedge'],
  choice: ['choice'],
  cache: ['cache'],
  fallback: ['fallback'],
  mode: ['mode'],
};

/** The options of a page with their defaults, as its table has them. */
export function optionsTable(page: string): string {
  const fields: Table = Object.assign({}, ...policy().parts.map((part) => part.fields));
  const rows = pages[page]!.flatMap((key) => rowsOf(fields[key]!, key));
  return table(['option', 'default', 'what it means'], rows);
}

/** Every option of a policy with its default, and the page that says more. */
export function allOptionsTable(): string {
  const fields: Table = Object.assign({}, ...policy().parts.map((part) => part.fields));
  const rows = Object.entries(pages).flatMap(([page, keys]) =>
    keys.flatMap((key) => rowsOf(fields[key]!, key)).map((row) => [...row, `[${page}](policies/${page}.md)`]),
  );
  return table(['option', 'default', 'what it means', 'page'], rows);
}

/** Each reason and why; what to do is the page's own. */
export function stopRows(): string[] {
  return stopReasons.map((reason) => `| \`${reason}\` | ${sentence(stopSentences[reason])} | `);
}

export function rulesTable(): string {
  const rows = rules.map(({ id, severity, sentence: why, fix }) => [`\`${id}\``, severity, why, fix]);
  return table(['rule', 'how bad', 'why', 'fix'], rows);
}

function rowsOf(field: Field, path: string): string[][] {
  const within = [field, ...(field.of ?? [])].flatMap(({ fields = {} }) =>
    Object.entries(fields).flatMap(([key, its]) => rowsOf(its, `${path}.${key}`)),
  );
  return [[`\`${path}\``, defaultOf(field), fieldNotes[path]!], ...within];
}

function defaultOf(field: Field): string {
  const { default: defaultValue, fields, of = [] } = field;
  if (defaultValue === undefined) return fields && field.read(false, '') === null ? 'off' : '–';
  if (defaultValue === true && (fields || of.some((each) => each.fields))) return 'on';
  if (Array.isArray(defaultValue))
    return defaultValue.length > 0 ? defaultValue.map((each) => `\`${each}\``).join(', ') : 'none';
  return `\`${defaultValue}\``;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`);
  return lines.join('\n').replace(/\| (--- \| )+--- \|/, (rule) => rule.replaceAll(' ', ''));
}

function sentence(text: string): string {
  return `${text[0]!.toUpperCase()}${text.slice(1)}.`;
}

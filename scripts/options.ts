import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { policy } from 'holdfast';
import type { Field, Table } from 'holdfast/fields';
import { capture, root, script, tool } from './command.ts';
import { type OptionHover, optionHovers } from './option-hovers.ts';

/** The text of an option without its last sentence, and that sentence. */
export interface OptionText {
  readonly note: string;
  /** What follows `Default: `; undefined for an option that is required. */
  readonly default: string | undefined;
}

/** Takes a hover text apart. Undefined if it does not end with the default of the option, or with `Required.` */
export function optionText(text: string): OptionText | undefined {
  const [, note, what, given] = /^(.+?) ?(Required|Default: (.+))\.$/.exec(text) ?? [];
  if (note === undefined) return undefined;
  return what === 'Required' ? { note: text, default: undefined } : { note, default: given };
}

/** The hovers of a policy document by path: `backoff.base`. */
export function policyHovers(hovers: readonly OptionHover[]): Map<string, OptionHover> {
  const found = new Map<string, OptionHover>();
  const ofPolicies = hovers.filter((each) => each.package === 'holdfast');
  const walk = (owner: string, prefix: string) => {
    for (const each of ofPolicies.filter((hover) => hover.owner === owner)) {
      found.set(prefix + each.path, each);
      const [inner] = /\b\w+Spec\b/.exec(each.type) ?? [];
      if (inner) walk(inner, `${prefix}${each.path}.`);
    }
  };
  walk('PolicySpec', '');
  return found;
}

/** Every path of a policy document with its field. */
export function policyFields(): Map<string, Field> {
  const found = new Map<string, Field>();
  const walk = (table: Table, prefix: string) => {
    for (const [key, field] of Object.entries(table)) {
      found.set(prefix + key, field);
      for (const { fields } of [field, ...(field.of ?? [])]) if (fields) walk(fields, `${prefix}${key}.`);
    }
  };
  for (const { fields } of policy().parts) walk(fields, '');
  return found;
}

/** The default of a field as a comment writes it. */
export function defaultText(field: Field): string | undefined {
  const { default: given, fields, of = [] } = field;
  const isGroup = fields !== undefined || of.some((each) => each.fields);
  if (given === undefined) return fields && field.read(false, '') === null ? 'off' : undefined;
  if (isGroup && given === true) return 'on';
  if (Array.isArray(given)) return given.length > 0 ? given.map((each) => `\`${each}\``).join(', ') : 'none';
  return `\`${given}\``;
}

/** The notes of `packages/core/src/policy/field-notes.ts`, from the comments of `PolicySpec`. */
export function policyNotes(hovers: readonly OptionHover[]): Record<string, string> {
  const notes = [...policyHovers(hovers)].map(([at, { text }]) => [at, optionText(text)?.note ?? text]);
  return Object.fromEntries(notes);
}

/** `docs/options.md`. `policyTable` is its first table. */
export function optionsPage(hovers: readonly OptionHover[], policyTable: string): string {
  const ofPolicies = new Set(policyHovers(hovers).values());
  const others = Map.groupBy(
    hovers.filter((each) => !ofPolicies.has(each)),
    (each) => each.package,
  );
  const sections = [...others].map(([name, its]) => {
    const owners = [...Map.groupBy(its, ({ owner }) => owner)];
    return [`## ${name}`, ...owners.flatMap(([owner, all]) => [`### ${owner}`, tableOf(all)])].join('\n\n');
  });
  const parts = [
    '# Every option',
    'Made of the comments that an editor shows (`npm run options`). A test fails when this page is stale.',
    '## A policy',
    policyTable,
    ...sections,
  ];
  return `${parts.join('\n\n')}\n`;
}

function tableOf(hovers: readonly OptionHover[]): string {
  const rows = hovers.map(({ path: at, text }) => {
    const { note = text, default: given } = optionText(text) ?? {};
    return `| \`${at}\` | ${given ?? '–'} | ${note.replaceAll('|', '\\|')} |`;
  });
  return ['| option | default | what it means |', '|---|---|---|', ...rows].join('\n');
}

async function writeAll(): Promise<void> {
  const { code, output } = await capture(script('scripts/build.ts'));
  if (code !== 0) console.error(output);
  const hovers = optionHovers();
  const lines = Object.entries(policyNotes(hovers)).map(
    ([at, note]) => `  ${JSON.stringify(at)}: ${JSON.stringify(note)},`,
  );
  const notesFile = path.join(root, 'packages/core/src/policy/field-notes.ts');
  const head = readFileSync(notesFile, 'utf8').split(/^export const /m)[0];
  const type = 'Readonly<Record<string, string>>';
  writeFileSync(notesFile, `${head}export const fieldNotes: ${type} = {\n${lines.join('\n')}\n};\n`);
  await capture(tool('@biomejs/biome/bin/biome', 'check', '--write', notesFile));
  // Imported now, because it reads the notes.
  const tables = await import('../packages/core/test/doc-tables.ts');
  writeFileSync(path.join(root, 'docs/options.md'), optionsPage(hovers, tables.allOptionsTable()));
  for (const page of Object.keys(tables.pages)) {
    const file = path.join(root, `docs/policies/${page}.md`);
    const text = readFileSync(file, 'utf8');
    const table = tables.optionsTable(page);
    writeFileSync(
      file,
      text.replace(/(## Options\n\n)\|[\s\S]*?\|(\n\n)/, (_all, before, after) => before + table + after),
    );
  }
  for (const [name, its] of Map.groupBy(hovers, (each) => each.package)) {
    const told = its.filter(({ text }) => optionText(text));
    console.log(`${name}: ${told.length} of ${its.length} options have a text with their default`);
  }
}

if (import.meta.main) await writeAll();

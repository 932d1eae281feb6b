import path from 'node:path';
import { commentsOf, lineAt } from './syntax.ts';
import type { Rule, TidyFile } from './tidy-rules.ts';

interface RetiredWord {
  /** Names are split into words: `laneOf`, `lane_of` and `lane-of.ts` all contain `lane`. Two words are written with a space. */
  readonly word: string;
  /** The word to use instead. */
  readonly use: string;
  /** A phrase that contains the word and stays. */
  readonly except?: string;
  /** Where the rule applies: everywhere in `src` unless given. */
  readonly within?: readonly string[];
}

/** Words that once hid what a thing is, or meant several things. */
const retiredWords: readonly RetiredWord[] = [
  { word: 'swift', use: 'fast path' },
  { word: 'flight', use: 'attempt', except: 'in flight', within: ['packages/core/src/run/'] },
  { word: 'shell', use: 'promise driver', within: ['packages/core/'] },
  { word: 'shell', use: 'terminal', within: ['packages/cli/src/commands/dlq', 'packages/chaos/'] },
  { word: 'leaver', use: 'abort listener' },
  { word: 'crowd', use: 'abort listeners', within: ['packages/core/'] },
  { word: 'surroundings', use: 'ambient context' },
  { word: 'crew', use: 'worker pool' },
  { word: 'hermit', use: 'owner of an exclusive run' },
  { word: 'solitude', use: 'exclusive run' },
  { word: 'standing orders', use: 'topic controls' },
  { word: 'brake', use: 'dependency gate', within: ['packages/events/'] },
  { word: 'breath', use: 'yield to the event loop' },
  { word: 'caretaker', use: 'maintenance' },
  { word: 'cohort', use: 'tenant level' },
  { word: 'debt', use: 'theoretical arrival time', within: ['packages/server/', 'engines/'] },
  { word: 'leash', use: 'child guard' },
  { word: 'rooms', use: 'packages' },
  { word: 'waiting room', use: 'queue inspection' },
  { word: 'in hand', use: 'leased', within: ['engines/'] },
  { word: 'lane', use: 'order key', within: ['engines/'] },
];

/** Files that must keep a retired word, with the reason. */
const mayKeepWords: Readonly<Record<string, string>> = {
  'engines/sqlite/src/schema.ts': 'version 1 of the schema has the old names of tables and columns',
};

/** Words that were replaced do not come back: not in names, comments or texts of `src`. */
export const noRetiredWords: Rule = ({ path: file, text }) => {
  if (!isSource(file) || file in mayKeepWords) return [];
  const applicable = retiredWords.filter(
    ({ within }) => within?.some((folder) => file.startsWith(folder)) ?? true,
  );
  const complaints: string[] = [];
  for (const [line, content] of [`/${file}`, ...text.split('\n')].entries()) {
    const words = ` ${wordsOf(content).join(' ')} `;
    for (const { word, use, except = '' } of applicable) {
      const rest = except === '' ? words : words.replaceAll(` ${except} `, ' ');
      if (!rest.includes(` ${word} `) && !rest.includes(` ${word}s `)) continue;
      complaints.push(`${file}:${Math.max(1, line)} says "${word}"; say "${use}".`);
    }
  }
  return complaints;
};

/** `laneOf`, `LANE_MAX` and `lane-keeper.ts` as lower-case words. */
function wordsOf(text: string): string[] {
  return text
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .split(/[^A-Za-z]+/)
    .filter((word) => word !== '')
    .map((word) => word.toLowerCase());
}

/** Names of others that comments mention and no code of ours has. */
const namesOfOthers: ReadonlySet<string> = new Set([
  'pcache1Truncate', // a function inside SQLite
]);

/** Everything that code, manifests and examples call by a name: what a comment may put into backticks. */
export function vocabularyOf(files: Iterable<TidyFile>): ReadonlySet<string> {
  const names = new Set<string>(namesOfOthers);
  for (const { path: file, text } of files) {
    for (const part of file.split('/')) names.add(part).add(path.basename(part, path.extname(part)));
    if (!/\.(ts|mts|js|mjs|json|ya?ml|css|html)$/.test(file)) continue;
    for (const [name] of withoutComments(file, text).matchAll(/[\w$]+/g)) names.add(name);
  }
  return names;
}

/** A name in backticks inside a comment exists; one that was renamed is worse than none. */
export function noUnknownNames(vocabulary: ReadonlySet<string>): Rule {
  return ({ path: file, text }) => {
    if (!isSource(file)) return [];
    return commentsOf(file, text).flatMap(({ value, start }) =>
      [...value.matchAll(/`([^`\n]+)`/g)].flatMap(({ 1: quoted = '', index }) => {
        if (vocabulary.has(quoted)) return [];
        const isFile = /^[\w-]+(\.[\w-]+)*\.(ts|mjs|json|yaml|md)$/.test(quoted);
        // Anything else is an expression, a header, a path or a command, and not one name.
        if (!isFile && !/^[#.]?[A-Za-z_$][\w$]*(\.#?[\w$]+)*(\(\))?$/.test(quoted)) return [];
        const names = isFile ? [quoted] : quoted.replace('()', '').split(/[.#]+/);
        const unknown = names.find((name) => name !== '' && !vocabulary.has(name));
        if (unknown === undefined) return [];
        return [
          `${file}:${lineAt(text, start + index)} mentions \`${quoted}\`, and no code has "${unknown}".`,
        ];
      }),
    );
  };
}

function withoutComments(file: string, text: string): string {
  if (!file.endsWith('.ts')) return text;
  let rest = '';
  let at = 0;
  for (const { start, end } of commentsOf(file, text)) {
    rest += `${text.slice(at, start)} `;
    at = end;
  }
  return rest + text.slice(at);
}

function isSource(file: string): boolean {
  return /^(packages|engines)\/[^/]+\/src\/.*\.ts$/.test(file);
}

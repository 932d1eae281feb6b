import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import {
  type Checker,
  type Symbol as NamedSymbol,
  type Project,
  SymbolFlags,
} from 'typescript/unstable/sync';
import { root } from './command.ts';
import { asUser, publishedEntries } from './option-hovers.ts';
import { commentsOf } from './syntax.ts';

/** A name that a user of the built packages can import. */
export interface PublicName {
  /** `holdfast/testing`. */
  readonly entry: string;
  readonly name: string;
  /** The doc comment, in one line; empty if there is none. */
  readonly comment: string;
  /** Its declaration without comments, as it is in the `.d.ts` file. */
  readonly declaration: string;
  /** The `.d.ts` file, from the root of the repository. */
  readonly file: string;
}

/** Every exported name of every entry, by entry and name. Reads what the last build wrote. */
export function publicNames(): PublicName[] {
  const entries = publishedEntries();
  const imports = entries.map((entry, index) => `export * as entry${index} from '${entry}';`);
  return asUser([imports.join('\n')], (project, [file]) => {
    const { checker, program } = project;
    const modules = checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(file!)!)!);
    const files = new FileTexts();
    return entries.flatMap((entry, index) => {
      const target = checker.getAliasedSymbol(modules.find((each) => each.name === `entry${index}`)!);
      if (checker.isUnknownSymbol(target)) throw new Error(`${entry} has no types: build the packages first`);
      const exported = checker.getExportsOfModule(target).toSorted((a, b) => (a.name < b.name ? -1 : 1));
      return exported.map((each) => publicName(entry, each, checker, project, files));
    });
  });
}

function publicName(
  entry: string,
  exported: NamedSymbol,
  checker: Checker,
  project: Project,
  files: FileTexts,
): PublicName {
  const symbol = exported.flags & SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported;
  const declarations = symbol.declarations.map((handle) => {
    const node = handle.resolve(project)!;
    return files.between(handle.path, node.pos, node.end);
  });
  return {
    entry,
    name: exported.name,
    comment: symbol.getDocumentationComment(checker).replaceAll(/\s+/g, ' ').trim(),
    declaration: [...new Set(declarations)].join('\n'),
    file: files.nameOf(symbol.declarations[0]?.path ?? ''),
  };
}

/** Texts of `.d.ts` files, with spaces instead of comments, so that places stay the same. */
class FileTexts {
  readonly #texts = new Map<string, string>();
  /** The compiler gives paths in lower case where the file system does not care about case. */
  readonly #names = new Map(
    globSync('{packages,engines}/*/dist/**/*.d.ts', { cwd: root }).map((name) => [name.toLowerCase(), name]),
  );

  nameOf(file: string): string {
    const [inRepository = file] = /(?:packages|engines)\/[^/]+\/dist\/.*$/i.exec(file) ?? [];
    return this.#names.get(inRepository.toLowerCase()) ?? inRepository;
  }

  between(file: string, start: number, end: number): string {
    const name = this.nameOf(file);
    const known = this.#texts.get(name) ?? withoutComments(path.join(root, name));
    this.#texts.set(name, known);
    return oneLine(known.slice(start, end));
  }
}

function withoutComments(file: string): string {
  let text = readFileSync(file, 'utf8');
  for (const { start, end } of commentsOf(file, text))
    text = text.slice(0, start) + ' '.repeat(end - start) + text.slice(end);
  return text;
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').replaceAll('( ', '(').trim();
}

const lineMax = 160;

/** The public names of one package, for people to read in a diff: `docs/reference/api/core.txt`. */
export function snapshotOf(names: readonly PublicName[]): string {
  const entries = [...Map.groupBy(names, ({ entry }) => entry)];
  const parts = entries.map(([entry, its]) => `# ${entry}\n\n${its.map(described).join('\n')}`);
  return `${parts.join('\n\n')}\n`;
}

/** A signature in one line; the members of a long type, and the rest of a long line, have lines of their own. */
function described({ declaration }: PublicName): string {
  const text = declaration.replace(/^export (declare )?/, '').replace(/;$/, '');
  const isWhole = /^(interface|type|class|abstract|function|async|const|enum)\b/.test(text);
  const short = (isWhole ? text : `const ${text}`)
    .replaceAll('readonly ', '')
    .replaceAll(/(\w\?: [^;{}()]*?) \| undefined(?=[;,)])/g, '$1');
  return (short.length <= lineMax ? [short] : membersOf(short)).flatMap(folded).join('\n');
}

/** Breaks at the outermost braces, if the declaration ends with them, and at the semicolons between. */
function membersOf(text: string): string[] {
  const open = text.indexOf('{');
  if (!/^(interface|class|abstract class) /.test(text)) return [text];
  const lines = [text.slice(0, open + 1)];
  let depth = 0;
  let line = '';
  for (const character of text.slice(open + 1, -1)) {
    if ('{(['.includes(character)) depth++;
    if ('})]'.includes(character)) depth--;
    if (character === ';' && depth === 0) {
      lines.push(`  ${line.trim()}`);
      line = '';
    } else line += character;
  }
  return [...lines, '}'];
}

/** Breaks a long line before a word, so that nothing of it is left out. */
function folded(line: string): string[] {
  const lines: string[] = [];
  let rest = line;
  while (rest.length > lineMax) {
    const at = rest.lastIndexOf(' ', lineMax);
    if (at < lineMax / 2) break;
    lines.push(rest.slice(0, at));
    rest = `      ${rest.slice(at + 1)}`;
  }
  return [...lines, rest];
}

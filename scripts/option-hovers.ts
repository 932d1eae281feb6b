import { globSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import {
  API,
  type Checker,
  type Diagnostic,
  type Symbol as NamedSymbol,
  type Project,
  SignatureKind,
  SymbolFlags,
  type Type,
  TypeFlags,
  type UnionType,
} from 'typescript/unstable/sync';
import { root } from './command.ts';
import { hoversAt } from './editor.ts';

/** One option as an editor shows it to a user of the built packages. */
export interface OptionHover {
  readonly package: string;
  /** The interface of the options, or the function that takes them if their type has no name: `PolicySpec`. */
  readonly owner: string;
  /** Within the owner: `backoff.jitter.plusMinus`. */
  readonly path: string;
  readonly type: string;
  /** The doc comment that reaches the hover; empty if none does. */
  readonly text: string;
}

/** A type of options by its name, and a parameter for options by its own. */
const typeNames = /(Options|Spec|Environment|LintFacts)$/;
const parameterNames = /^(options|spec|environment)$/;

/** What a gateway file can say. Nobody writes it in TypeScript: for files, editors have JSON Schema. */
const fileTypes = new Set(['RouteSpec', 'ServiceSpec', 'UpstreamSpec']);

/** A property of a mapped type, such as `Partial<…>`: the hover of TypeScript 7 leaves its comment out. */
const mapped = 1 << 18;

const depthMax = 6;

/**
 * Asks TypeScript for every option of every package. It sees the packages as a user does, through their `exports` and
 * the `.d.ts` files of the last build.
 */
export function optionHovers(): OptionHover[] {
  const entries = publishedEntries();
  const imports = entries.map((entry, index) => `export * as entry${index} from '${entry}';`);
  return asUser([imports.join('\n')], ({ checker, program }, [name]) => {
    const file = program.getSourceFile(name!)!;
    const modules = checker.getExportsOfModule(checker.getSymbolAtLocation(file)!);
    const reader = new HoverReader(checker);
    entries.forEach((entry, index) => {
      const target = checker.getAliasedSymbol(modules.find((each) => each.name === `entry${index}`)!);
      if (checker.isUnknownSymbol(target)) throw new Error(`${entry} has no types: build the packages first`);
      reader.readModule(entry, checker.getExportsOfModule(target));
    });
    return reader.hovers.filter(({ owner }) => !fileTypes.has(owner));
  });
}

/** What the compiler says of each file of a user; of several complaints, the first. */
export function typosIn(files: readonly string[]): (string | undefined)[] {
  return asUser(files, ({ program }, names) =>
    names.map((name) => program.getSemanticDiagnostics(name).map(wholeText)[0]),
  );
}

/**
 * What the language server shows at each `key` of a call with these options: `shownAt('holdfast', 'policy', ['patience'])`.
 * A key may have keys inside: `breaker.probes`. `call` makes the function if it is not exported itself.
 */
export async function shownAt(
  entry: string,
  name: string,
  keys: readonly string[],
  call = name,
): Promise<string[]> {
  const offsets: number[] = [];
  let text = `import { ${name} } from '${entry}';\n`;
  for (const key of keys) {
    const parts = key.split('.');
    text += `${call}({ ${parts
      .slice(0, -1)
      .map((part) => `${part}: { `)
      .join('')}`;
    offsets.push(text.length);
    text += `${parts.at(-1)}: null!${' }'.repeat(parts.length)});\n`;
  }
  const { folder, names } = userProject([text]);
  try {
    return await hoversAt(names[0]!, text, offsets);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function wholeText({ text, messageChain = [] }: Diagnostic): string {
  return [text, ...messageChain.map(wholeText)].join(' ');
}

/** Opens files in a strict project that has our packages installed. */
export function asUser<R>(
  files: readonly string[],
  ask: (project: Project, names: readonly string[]) => R,
): R {
  const { folder, config, names } = userProject(files);
  const api = new API({ cwd: folder });
  try {
    return ask(api.updateSnapshot({ openProjects: [config] }).getProjects()[0]!, names);
  } finally {
    api.close();
    rmSync(folder, { recursive: true });
  }
}

function userProject(files: readonly string[]): { folder: string; config: string; names: readonly string[] } {
  const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-editor-'));
  const names = files.map((_, index) => path.join(folder, `user${index}.ts`));
  symlinkSync(path.join(root, 'node_modules'), path.join(folder, 'node_modules'));
  const config = path.join(folder, 'tsconfig.json');
  writeFileSync(config, JSON.stringify({ compilerOptions, files: names }));
  names.forEach((name, index) => {
    writeFileSync(name, files[index]!);
  });
  return { folder, config, names };
}

const compilerOptions = {
  strict: true,
  exactOptionalPropertyTypes: true,
  module: 'nodenext',
  target: 'es2023',
  lib: ['es2023', 'dom'],
  types: ['node'],
  noEmit: true,
};

/** Every entry with types of every package: `holdfast`, `holdfast/testing`, `@holdfast/server/fastify`, … */
export function publishedEntries(): string[] {
  return globSync('{packages,engines}/*/package.json', { cwd: root })
    .toSorted()
    .flatMap((file) => {
      const { name, exports = {} } = JSON.parse(readFileSync(path.join(root, file), 'utf8'));
      const typed = Object.entries<{ types?: string }>(exports).filter(([, { types }]) => types);
      return typed.map(([entry]) => name + entry.slice(1));
    });
}

class HoverReader {
  readonly hovers: OptionHover[] = [];
  readonly #checker: Checker;
  /** An option of an interface that several functions take is read once. */
  readonly #known = new Set<string>();

  constructor(checker: Checker) {
    this.#checker = checker;
  }

  readModule(entry: string, exported: readonly NamedSymbol[]): void {
    const checker = this.#checker;
    const name = entry
      .split('/')
      .slice(0, entry.startsWith('@') ? 2 : 1)
      .join('/');
    for (const each of exported) {
      const symbol = each.flags & SymbolFlags.Alias ? checker.getAliasedSymbol(each) : each;
      if (
        symbol.flags & SymbolFlags.Type &&
        !(symbol.flags & SymbolFlags.Class) &&
        typeNames.test(each.name)
      ) {
        this.#read(name, each.name, '', checker.getDeclaredTypeOfSymbol(symbol), 0);
      }
      if (!(symbol.flags & SymbolFlags.Value)) continue;
      const type = checker.getTypeOfSymbol(symbol);
      for (const signature of type ? checker.getSignaturesOfType(type, SignatureKind.Call) : []) {
        for (const parameter of signature.getParameters()) {
          const its = checker.getTypeOfSymbol(parameter)!;
          if (parameterNames.test(parameter.name) || typeNames.test(nameOf(its) ?? ''))
            this.#read(name, nameOf(its) ?? each.name, '', its, 0);
        }
      }
    }
  }

  #read(from: string, owner: string, prefix: string, type: Type, depth: number): void {
    if (depth > depthMax) return;
    for (const each of this.#objectsIn(type, depth === 0)) {
      const name = nameOf(each);
      const isNamed = name !== undefined && typeNames.test(name);
      const [to, at] = isNamed ? [name, ''] : [owner, prefix];
      const home = (isNamed && packageOf(each.getSymbol())) || from;
      for (const property of this.#checker.getPropertiesOfType(each)) {
        const key = `${home} ${to} ${at}${property.name}`;
        if (this.#known.has(key) || packageOf(property) === undefined) continue;
        this.#known.add(key);
        const its = this.#checker.getTypeOfSymbol(property)!;
        this.hovers.push({
          package: home,
          owner: to,
          path: at + property.name,
          type: this.#checker.typeToString(its),
          text: property.checkFlags & mapped ? '' : this.#textOf(property),
        });
        this.#read(home, to, `${at}${property.name}.`, its, depth + 1);
      }
    }
  }

  #textOf(property: NamedSymbol): string {
    return property.getDocumentationComment(this.#checker).replaceAll(/\s+/g, ' ').trim();
  }

  /** The types of objects that a value can be: members of a union, items of a list, values of a map. */
  #objectsIn(type: Type, isRoot: boolean): Type[] {
    const checker = this.#checker;
    if (type.flags & TypeFlags.Union)
      return (type as UnionType).getTypes().flatMap((each) => this.#objectsIn(each, isRoot));
    if (!(type.flags & (TypeFlags.Object | TypeFlags.Intersection))) return [];
    if (checker.isArrayLikeType(type)) {
      const [item] = checker.getIndexInfosOfType(type);
      return item ? this.#objectsIn(item.valueType, isRoot) : [];
    }
    if (checker.getSignaturesOfType(type, SignatureKind.Call).length > 0) return [];
    const values = checker
      .getIndexInfosOfType(type)
      .flatMap(({ valueType }) => this.#objectsIn(valueType, false));
    return isRoot || this.#isGroup(type) ? [type, ...values] : values;
  }

  /** Whether it is a group of options, and not data, a store, or anything else that acts. */
  #isGroup(type: Type): boolean {
    // `Pick<Engine, 'broker'>` is the part of a store that is needed.
    if (type.getAliasSymbol()?.name === 'Pick') return false;
    const properties = this.#checker.getPropertiesOfType(type);
    if (this.#acts(type) || !properties.some(({ flags }) => flags & SymbolFlags.Optional)) return false;
    return properties.some((property) => !this.#acts(this.#checker.getTypeOfSymbol(property)!));
  }

  /** Whether it is a class, or an object with a function that it must have: a clock, an engine. */
  #acts(type: Type): boolean {
    const each = this.#checker.getNonNullableType(type) ?? type;
    const symbol = each.getSymbol();
    if (symbol && symbol.flags & SymbolFlags.Class) return true;
    if (!(each.flags & TypeFlags.Object) || this.#checker.isArrayLikeType(each)) return false;
    return this.#checker.getPropertiesOfType(each).some((property) => {
      if (property.flags & SymbolFlags.Method) return true;
      if (property.flags & SymbolFlags.Optional) return false;
      const its = this.#checker.getTypeOfSymbol(property)!;
      return this.#checker.getSignaturesOfType(its, SignatureKind.Call).length > 0;
    });
  }
}

function nameOf(type: Type): string | undefined {
  if (type.flags & TypeFlags.Union) {
    const named = (type as UnionType).getTypes().flatMap((each) => nameOf(each) ?? []);
    return named.length === 1 ? named[0] : undefined;
  }
  const name = type.getAliasSymbol()?.name ?? type.getSymbol()?.name;
  return name?.startsWith('__') ? undefined : name;
}

/** Options that we inherit, such as those of `fetch`, are of no package of ours and have documents of their own. */
function packageOf(symbol: NamedSymbol | undefined): string | undefined {
  const file = (symbol?.valueDeclaration ?? symbol?.declarations[0])?.path ?? '';
  const [, folder] = /\/((?:packages|engines)\/[^/]+)\/dist\//i.exec(file) ?? [];
  return folder && JSON.parse(readFileSync(path.join(root, folder, 'package.json'), 'utf8')).name;
}

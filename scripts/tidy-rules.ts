import path from 'node:path';
import { folderComplaint } from './core-folders.ts';
import { mayImport, packageNamed, packageOf } from './package-boundaries.ts';
import { isNode, lineAt, type Node, parse, walk } from './syntax.ts';

export interface TidyFile {
  /** Relative to the repository, with forward slashes. */
  readonly path: string;
  readonly text: string;
}

/** A sentence with the place it is about: `packages/core/src/run.ts:12 …`. */
export type Complaint = string;
export type Rule = (file: TidyFile) => Complaint[];

const SYSTEM_CLOCKS = new Set([
  'packages/core/src/time/system-clock.ts',
  // Time since the machine was started, which processes on one file have in common.
  'engines/sqlite/src/uptime.ts',
]);
const LINES_MAX = 400;

/** Core imports nothing; these few files adapt it to Node and say so here. */
const coreBuiltins: Record<string, readonly string[]> = {
  'packages/core/src/ambient.ts': ['node:async_hooks'],
};

const ambientFunctions = new Set(['setTimeout', 'setInterval', 'setImmediate']);
const ambientMembers = new Map([
  ['Date', ['now']],
  ['performance', ['now', 'timeOrigin']],
  ['Math', ['random']],
  ['crypto', ['randomUUID', 'getRandomValues', 'randomBytes', 'randomInt']],
  ['process', ['hrtime', 'uptime']],
  ['AbortSignal', ['timeout']],
]);
const ambientModules = new Set(['timers', 'timers/promises', 'perf_hooks']);
const globals = new Set(['globalThis', 'window', 'self', 'global']);

const drawerNames = new Set(['util', 'utils', 'helper', 'helpers', 'common', 'types', 'constants', 'misc']);

/** Imports follow the arrows between the packages, by package name or by a path that leaves the package. */
export const importDirection: Rule = ({ path: file, text }) => {
  const own = packageOf(file);
  if (own === undefined || !isPackageSource(file)) return [];
  return imports(file, text).flatMap(({ specifier, line, isType }) => {
    const at = `${file}:${line}`;
    if (specifier.startsWith('.')) {
      const target = path.posix.join(path.posix.dirname(file), specifier);
      const folder = folderComplaint(file, target, isType);
      if (folder !== undefined) return [`${at} imports ${specifier}, and ${folder}.`];
      return target.startsWith(`${own.folder}/`)
        ? []
        : [`${at} reaches out of its package with ${specifier}.`];
    }
    const other = packageNamed(specifier);
    if (other !== undefined && !mayImport(own, other)) {
      return [`${at} imports ${specifier}, and ${own.name} may not import ${other}.`];
    }
    if (own.folder === 'packages/core' && other === undefined && !coreBuiltins[file]?.includes(specifier)) {
      return [`${at} imports ${specifier}, and core imports nothing.`];
    }
    return [];
  });
};

/** What a package says that it depends on follows the same arrows. */
export const dependencyDirection: Rule = ({ path: file, text }) => {
  const own = packageOf(file);
  if (own === undefined || file !== `${own.folder}/package.json`) return [];
  const { dependencies, peerDependencies, optionalDependencies } = JSON.parse(text);
  return Object.keys({ ...dependencies, ...peerDependencies, ...optionalDependencies }).flatMap((name) => {
    if (own.folder === 'packages/core')
      return [`${file}:1 depends on ${name}, and core has no dependencies.`];
    const other = packageNamed(name);
    if (other === undefined || mayImport(own, other)) return [];
    return [`${file}:1 depends on ${name}, and ${own.name} may not import ${other}.`];
  });
};

/** Time and chance arrive through a Clock and a Random; the files that read the real ones are named. */
export const ambientTimeAndChance: Rule = ({ path: file, text }) => {
  if (!isPackageSource(file) || SYSTEM_CLOCKS.has(file)) return [];
  const complaints: Complaint[] = [];
  const complain = (node: Node, what: string) =>
    complaints.push(
      `${file}:${lineAt(text, node.start)} uses ${what}; take it from the Clock or Random given to you.`,
    );

  walk(parse(file, text), (node, parent) => {
    if (node.type === 'Identifier' && ambientFunctions.has(String(node.name)) && isReference(node, parent)) {
      complain(node, String(node.name));
    }
    const [object, member] = memberOf(node);
    if (member !== undefined && ambientMembers.get(object)?.includes(member))
      complain(node, `${object}.${member}`);
    if (member !== undefined && globals.has(object) && ambientFunctions.has(member)) complain(node, member);
    // `new Date()` and `Date()` read the clock; with an argument they only convert.
    if ((node.type === 'NewExpression' || node.type === 'CallExpression') && nameOf(node.callee) === 'Date') {
      if (node.type === 'CallExpression' || (node.arguments as Node[]).length === 0)
        complain(node, 'the current Date');
    }
  });
  for (const { specifier, line } of imports(file, text)) {
    if (ambientModules.has(specifier.replace(/^node:/, ''))) {
      complaints.push(`${file}:${line} imports ${specifier}; take time from the Clock given to you.`);
    }
  }
  return complaints;
};

/** A barrel names what it exports, so that a reader can find it and nothing leaks out by accident. */
export const noExportStar: Rule = ({ path: file, text }) => {
  if (!file.endsWith('.ts')) return [];
  const complaints: Complaint[] = [];
  walk(parse(file, text), (node) => {
    if (node.type !== 'ExportAllDeclaration' || node.exported !== null) return;
    complaints.push(`${file}:${lineAt(text, node.start)} exports *; name what is exported.`);
  });
  return complaints;
};

/** A file named after its kind becomes the drawer for everything. */
export const noDrawers: Rule = ({ path: file }) => {
  if (!/\.(ts|mts|js|mjs|tsx)$/.test(file)) return [];
  return file
    .split('/')
    .map((part) => part.split('.')[0] ?? '')
    .filter((part) => drawerNames.has(part))
    .map((part) => `${file}:1 is named "${part}"; name it after the idea it holds.`);
};

/** The repository must mean the same on every machine: `home` and `checkout` are this one's own folders. */
export function noMachineTraces(home: string, checkout: string): Rule {
  const traces: [RegExp, string][] = [
    [/\bregistry\.(npmjs|yarnpkg|npmmirror)\.\w+/, 'a package registry'],
    [
      /\b(files\.pythonhosted|pypi|proxy\.golang|repo\.maven|deb\.debian)\.(org|apache)\b/,
      'a package registry',
    ],
    [/(?<![\w.:/])\/(home|Users)\/\w+/, 'a home folder'],
    [/\b[A-Z]:\\Users\\/, 'a home folder'],
    ...[home, checkout]
      .filter((folder) => folder.length > 1)
      .map((folder): [RegExp, string] => [
        new RegExp(`(?<![\\w.:/])${RegExp.escape(folder)}(?=/|\\b)`),
        'a path of this machine',
      ]),
  ];
  return ({ path: file, text }) =>
    text
      .split('\n')
      .flatMap((line, index) =>
        traces
          .filter(([pattern]) => pattern.test(line))
          .map(([, what]) => `${file}:${index + 1} names ${what}.`),
      );
}

/** Worth a look rather than wrong. */
export const longFile: Rule = ({ path: file, text }) => {
  const lines = text.split('\n').length;
  if (!file.endsWith('.ts') || lines <= LINES_MAX) return [];
  return [`${file}:1 has ${lines} lines; above ${LINES_MAX} a file usually holds two ideas.`];
};

function isPackageSource(file: string): boolean {
  return /^(packages|engines)\/[^/]+\/src\/.*\.ts$/.test(file) && !file.endsWith('.test.ts');
}

interface Import {
  readonly specifier: string;
  readonly line: number;
  /** It is erased, and no module is loaded for it. */
  readonly isType: boolean;
}

function imports(file: string, text: string): Import[] {
  const found: Import[] = [];
  walk(parse(file, text), (node) => {
    const { source } = node;
    if (isNode(source) && typeof source.value === 'string') {
      const isType = node.importKind === 'type' || node.exportKind === 'type';
      found.push({ specifier: source.value, line: lineAt(text, node.start), isType });
    }
  });
  return found;
}

/** `a.b` and `x.a.b` give ['a', 'b']; anything else gives nothing. */
function memberOf(node: Node): [string, string] | [string, undefined] {
  if (node.type !== 'MemberExpression' || node.computed === true) return ['', undefined];
  const object = node.object as Node;
  const name = object.type === 'MemberExpression' ? nameOf(object.property) : nameOf(object);
  return [name, nameOf(node.property)];
}

function nameOf(node: unknown): string {
  return isNode(node) && node.type === 'Identifier' ? String(node.name) : '';
}

/** False for a name that only labels something: `clock.setTimeout`, a method, a key of a type or an object. */
function isReference(node: Node, parent: Node | undefined): boolean {
  if (parent === undefined) return true;
  if (parent.type === 'ImportSpecifier') return false;
  if (parent.type === 'MemberExpression') return parent.object === node || parent.computed === true;
  return parent.key !== node;
}

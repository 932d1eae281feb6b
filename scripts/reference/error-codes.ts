import { isNode, type Node, walk } from '../syntax.ts';
import { commentBefore, packageNameOf, type SourceFile, sourceFiles } from './source-files.ts';

export interface ErrorCode {
  readonly code: string;
  /** `RefusedError`; `warning` for what Node prints and nobody throws. */
  readonly class: string;
  /** The comment of the class; empty for one that several codes share. */
  readonly comment: string;
  readonly package: string;
}

/** Every error code in the sources. The suite of `conformance` expects codes and makes none but its own. */
export function errorCodes(): ErrorCode[] {
  const found = new Map<string, ErrorCode>();
  const homes = new Map<string, string>();
  for (const file of sourceFiles('{packages,engines}/*/src/**/*.ts')) {
    for (const [, name] of file.text.matchAll(/^export class (\w+Error) /gm))
      homes.set(name!, packageNameOf(file.path));
    if (file.path.endsWith('-checks.ts')) continue;
    for (const each of codesIn(file)) {
      const known = found.get(each.code);
      // The class that the code is written in says more than a place that only throws or compares it.
      if (!known || (known.class === '' && each.class !== '')) found.set(each.code, each);
    }
  }
  return [...found.values()]
    .map((each) => ({
      ...each,
      package: isShared(each) ? (homes.get(each.class) ?? each.package) : each.package,
    }))
    .toSorted((a, b) => (a.code < b.code ? -1 : 1));
}

/** Whether the class is written for several packages to throw with codes of their own. */
function isShared({ class: owner, comment }: ErrorCode): boolean {
  return comment === '' && owner === 'ExpiredError';
}

function codesIn(file: SourceFile): ErrorCode[] {
  const found: ErrorCode[] = [];
  const add = (codes: readonly string[], owner: string, comment: string) => {
    for (const each of codes)
      found.push({
        code: each,
        class: owner,
        comment: codes.length === 1 ? comment : '',
        package: packageNameOf(file.path),
      });
  };
  const inClasses = new Set<Node>();
  walk(file.tree, (node) => {
    if (node.type !== 'ClassDeclaration' || !/Error$/.test(String((node.superClass as Node | null)?.name)))
      return;
    const its = literalsIn(node);
    for (const each of its) inClasses.add(each);
    const codes = its.map(({ value }) => String(value)).filter(isCode);
    add([...codes, ...templatesIn(node)], nameOf(node), commentBefore(file, node.start));
  });
  walk(file.tree, (node, parent) => {
    if (inClasses.has(node) || node.type !== 'Literal' || !isCode(String(node.value))) return;
    const isThrown = parent?.type === 'NewExpression' && isNode(parent.callee);
    const isConstant = parent?.type === 'VariableDeclarator';
    const key = parent?.type === 'Property' ? String((parent.key as Node).name) : '';
    const thrown = isThrown ? String((parent.callee as Node).name) : '';
    const comment = isConstant ? commentBefore(file, node.start - `const ${nameOf(parent)} = `.length) : '';
    const other = isConstant
      ? 'HoldfastError'
      : key === 'code'
        ? 'warning'
        : key === ''
          ? ''
          : 'RefusedError';
    add([String(node.value)], thrown || other, comment);
  });
  return found;
}

/** The codes of `super(\`HOLDFAST_SQS_${code}\`)`, by the type of the parameter. */
function templatesIn(node: Node): string[] {
  const prefixes: string[] = [];
  const endings: string[] = [];
  walk(node, (each, parent) => {
    if (each.type === 'TemplateElement') {
      const { cooked } = each.value as { cooked: string };
      if (/^HOLDFAST_[A-Z_]+_$/.test(cooked)) prefixes.push(cooked);
    }
    if (each.type === 'TSLiteralType' && parent?.type === 'TSUnionType')
      endings.push(String((each.literal as Node).value));
  });
  return prefixes.flatMap((prefix) => endings.map((ending) => prefix + ending));
}

function literalsIn(node: Node): Node[] {
  const found: Node[] = [];
  walk(node, (each) => {
    if (each.type === 'Literal') found.push(each);
  });
  return found;
}

function nameOf(node: Node): string {
  return isNode(node.id) ? String(node.id.name) : '';
}

function isCode(text: string): boolean {
  return /^HOLDFAST_[A-Z]+(_[A-Z]+)*$/.test(text);
}

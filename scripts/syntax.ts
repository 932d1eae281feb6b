import { parseSync } from 'oxc-parser';

/** A syntax tree's node, as far as the rules look into it. */
export interface Node {
  readonly type: string;
  readonly start: number;
  readonly [field: string]: unknown;
}

export type Visitor = (node: Node, parent: Node | undefined) => void;

/** Parses a TypeScript file; a tree, because text search takes comments and strings for code. */
export function parse(path: string, text: string): Node {
  const { program, errors } = parseSync(path, text, { lang: 'ts', sourceType: 'module' });
  if (errors[0] !== undefined) throw new SyntaxError(`${path}: ${errors[0].message}`);
  return program as unknown as Node;
}

export interface Comment {
  readonly value: string;
  readonly start: number;
  readonly end: number;
}

/** In the order of the file; `value` is without the signs that begin and end it. */
export function commentsOf(path: string, text: string): readonly Comment[] {
  return parseSync(path, text, { lang: 'ts', sourceType: 'module' }).comments;
}

/** Calls the visitor for every node, parents first. */
export function walk(node: Node, visit: Visitor, parent?: Node): void {
  visit(node, parent);
  for (const field of Object.values(node)) {
    for (const child of Array.isArray(field) ? field : [field]) {
      if (isNode(child)) walk(child, visit, node);
    }
  }
}

export function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && typeof (value as Node).type === 'string';
}

export function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split('\n').length;
}

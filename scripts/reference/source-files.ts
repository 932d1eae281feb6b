import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { root } from '../command.ts';
import { commentsOf, type Node, parse } from '../syntax.ts';

export interface SourceFile {
  /** From the root of the repository. */
  readonly path: string;
  readonly text: string;
  readonly tree: Node;
}

export function sourceFiles(pattern: string): SourceFile[] {
  return globSync(pattern, { cwd: root })
    .toSorted()
    .map((file) => sourceFile(file));
}

export function sourceFile(file: string): SourceFile {
  const text = readFileSync(path.join(root, file), 'utf8');
  return { path: file, text, tree: parse(file, text) };
}

/** The name of the package that a file belongs to. */
export function packageNameOf(file: string): string {
  const [folder = ''] = /^(packages|engines)\/[^/]+/.exec(file) ?? [];
  return JSON.parse(readFileSync(path.join(root, folder, 'package.json'), 'utf8')).name;
}

/** The doc comment that ends right before a place, in one line; empty if there is none. */
export function commentBefore({ path: file, text }: SourceFile, place: number): string {
  const comment = commentsOf(file, text).findLast(({ end }) => end <= place);
  // Only what a declaration, a union or a property begins with may stand between.
  if (!comment || !/^\s*(export\s+|\|\s*|\(\s*)*$/.test(text.slice(comment.end, place))) return '';
  return comment.value
    .replaceAll(/^\s*\*+ ?/gm, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim();
}

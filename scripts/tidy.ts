import { readFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { capture, root } from './command.ts';
import {
  ambientTimeAndChance,
  dependencyDirection,
  importDirection,
  longFile,
  noDrawers,
  noExportStar,
  noMachineTraces,
  type Rule,
  type TidyFile,
} from './tidy-rules.ts';
import { noRetiredWords, noUnknownNames, vocabularyOf } from './word-rules.ts';

const files = await readFiles(await ownFiles());

const rules: readonly Rule[] = [
  importDirection,
  dependencyDirection,
  ambientTimeAndChance,
  noExportStar,
  noDrawers,
  noMachineTraces(os.homedir(), root),
  noRetiredWords,
  noUnknownNames(vocabularyOf(files)),
];

const complaints: string[] = [];
for (const file of files) {
  complaints.push(...rules.flatMap((rule) => rule(file)));
  for (const note of longFile(file)) console.log(`note: ${note}`);
}
for (const complaint of complaints) console.error(complaint);
process.exitCode = complaints.length === 0 ? 0 : 1;

async function readFiles(names: readonly string[]): Promise<TidyFile[]> {
  const found: TidyFile[] = [];
  for (const name of names) {
    const text = await readFile(path.join(root, name), 'utf8').catch(() => undefined);
    // Removed since it was listed, or not text.
    if (text !== undefined && !text.includes('\0')) found.push({ path: name, text });
  }
  return found;
}

/** Tracked files and new ones, so that a complaint comes before the commit and not after it. */
async function ownFiles(): Promise<string[]> {
  const listed = await capture(['git', 'ls-files', '--cached', '--others', '--exclude-standard', '-z']);
  if (listed.code !== 0) throw new Error(`git could not list the files of this repository: ${listed.output}`);
  return listed.output.split('\0').filter((file) => file !== '');
}

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
} from './tidy-rules.ts';

const rules: readonly Rule[] = [
  importDirection,
  dependencyDirection,
  ambientTimeAndChance,
  noExportStar,
  noDrawers,
  noMachineTraces(os.homedir(), root),
];

const complaints: string[] = [];
for (const file of await ownFiles()) {
  const text = await readFile(path.join(root, file), 'utf8').catch(() => undefined);
  // Gone since it was listed, or not text.
  if (text === undefined || text.includes('\0')) continue;
  complaints.push(...rules.flatMap((rule) => rule({ path: file, text })));
  for (const note of longFile({ path: file, text })) console.log(`note: ${note}`);
}
for (const complaint of complaints) console.error(complaint);
process.exitCode = complaints.length === 0 ? 0 : 1;

/** Tracked files and new ones, so that a complaint comes before the commit and not after it. */
async function ownFiles(): Promise<string[]> {
  const listed = await capture(['git', 'ls-files', '--cached', '--others', '--exclude-standard', '-z']);
  if (listed.code !== 0) throw new Error(`git could not list the files of this repository: ${listed.output}`);
  return listed.output.split('\0').filter((file) => file !== '');
}

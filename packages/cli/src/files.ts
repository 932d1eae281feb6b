import { readFile, writeFile } from 'node:fs/promises';
import { StoreUnavailable } from './command.ts';

/** Reads a file as text, without the byte order mark that some editors write. */
export async function readText(file: string): Promise<string> {
  try {
    return (await readFile(file, 'utf8')).replace(/^\uFEFF/, '');
  } catch (error) {
    throw unavailable(file, 'read', error);
  }
}

export async function writeText(file: string, text: string): Promise<void> {
  try {
    await writeFile(file, text);
  } catch (error) {
    throw unavailable(file, 'written', error);
  }
}

function unavailable(file: string, verb: 'read' | 'written' | 'opened', cause: unknown): StoreUnavailable {
  const { code, message } = cause as NodeJS.ErrnoException;
  if (code === 'ENOENT' && verb !== 'written')
    return new StoreUnavailable(`there is no file ${file}.`, { cause });
  if (code === 'EISDIR') return new StoreUnavailable(`${file} is a folder, not a file.`, { cause });
  return new StoreUnavailable(`${file} cannot be ${verb}: ${message.replace(/\.?$/, '.')}`, { cause });
}

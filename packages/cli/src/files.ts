import { readFile, writeFile } from 'node:fs/promises';
import { StoreUnavailable } from './command.ts';

/** Reads a file as text, without a byte order mark. */
export async function readText(file: string): Promise<string> {
  try {
    return (await readFile(file, 'utf8')).replace(/^\uFEFF/, '');
  } catch (error) {
    throw new StoreUnavailable(`${file} cannot be read: ${(error as Error).message}.`);
  }
}

export async function writeText(file: string, text: string): Promise<void> {
  try {
    await writeFile(file, text);
  } catch (error) {
    throw new StoreUnavailable(`${file} cannot be written: ${(error as Error).message}.`);
  }
}

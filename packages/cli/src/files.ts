import { readFile, writeFile } from 'node:fs/promises';
import { CannotAsk } from './command.ts';

/** The text of a file. */
export async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    throw new CannotAsk(`${file} cannot be read: ${(error as Error).message}.`);
  }
}

export async function writeText(file: string, text: string): Promise<void> {
  try {
    await writeFile(file, text);
  } catch (error) {
    throw new CannotAsk(`${file} cannot be written: ${(error as Error).message}.`);
  }
}

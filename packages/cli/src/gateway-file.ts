import { readText } from './files.ts';

/**
 * Throws a `StoreUnavailable` if the file cannot be read at all. A file with mistakes is another case: the
 * package `@holdfast/gateway` reports them.
 */
export async function assertGatewayFile(file: string): Promise<void> {
  await readText(file);
}

import { OptionsError } from 'holdfast';

/** For engines: names are the same in every store, and there are stores that cannot keep a NUL. */
export function checkName(path: string, name: string | undefined): void {
  if (name?.includes('\0')) throw new OptionsError(path, name, 'a text without NUL');
}

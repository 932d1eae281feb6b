import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';

/** Debian's package of libfaketime, which gives a process a wall clock of its own. */
export const fakeTimePackage = 'faketime';

/** The library, where Debian has it or `LIBFAKETIME` names it. `undefined`: it is not there, or this is not Linux. */
export function fakeTimeLibrary(): string | undefined {
  if (process.platform !== 'linux') return undefined;
  const places = [
    process.env.LIBFAKETIME,
    ...multiarchFolders().map((folder) => path.join(folder, 'faketime')),
  ];
  return places
    .filter((place) => place !== undefined)
    .map((place) => (place.endsWith('.so.1') ? place : path.join(place, 'libfaketime.so.1')))
    .find((file) => existsSync(file));
}

function multiarchFolders(): string[] {
  return [
    '/usr/lib',
    '/usr/local/lib',
    ...readdirSync('/usr/lib').map((name) => path.join('/usr/lib', name)),
  ];
}

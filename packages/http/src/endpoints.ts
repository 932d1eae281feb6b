import { OptionsError } from 'holdfast';

/** Base URLs of servers that can all handle the same requests. */
export interface Endpoints {
  readonly targets: readonly string[];
  /** Returns the URL of `path` below `target`. A slash at the start of `path` is optional. */
  resolve(target: string, path: string): string;
  /** Throws if `path` leads out of a base URL, for example with `..`. */
  assertBelow(path: string): void;
}

/**
 * Matches every path that could contain `..` after URL parsing. URL parsers decode `%2e`, and remove tabs and
 * line breaks, so `.\t.` also means `..`.
 */
const climbing = /\.\.|%2e|[\t\n\r]/i;

export function endpointsOf(bases: readonly string[]): Endpoints {
  if (bases.length === 0) throw new OptionsError('endpoints', bases, 'at least one base URL');
  const targets = bases.map((base, index) => {
    const url = URL.parse(base);
    if (!url || !/^https?:/.test(base) || /[?#]/.test(base) || url.username || url.password) {
      // The error message must not show a password.
      const shown = url?.password ? url.protocol : base;
      const wanted = 'an absolute http or https URL without a query and without credentials';
      throw new OptionsError(`endpoints[${index}]`, shown, wanted);
    }
    return url.href.replace(/\/+$/, '');
  });
  const resolve = (target: string, path: string) =>
    target + (path.startsWith('/') || path.startsWith('?') || path === '' ? path : `/${path}`);
  const isBelow = (target: string, path: string) => {
    const { origin, pathname } = new URL(resolve(target, path));
    return `${origin}${pathname}/`.startsWith(`${target}/`);
  };
  return {
    targets: [...new Set(targets)],
    resolve,
    assertBelow(path) {
      if (!climbing.test(path) || targets.every((target) => isBelow(target, path))) return;
      throw new OptionsError('url', path, 'a path that stays below every endpoint');
    },
  };
}

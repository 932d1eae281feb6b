import { OptionsError } from 'holdfast';

/** Base URLs of equal servers. */
export interface Endpoints {
  /** The base URLs, without a slash at the end. */
  readonly targets: readonly string[];
  /** `path`, relative or from the root, below `target`. */
  resolve(target: string, path: string): string;
  /** Throws where `path` leads out of one of them. */
  assertBelow(path: string): void;
}

/** A path without any of these cannot lead upwards. A URL parser removes tabs and line breaks, so `.\t.` leads upwards, too. */
const climbing = /\.\.|%2e|[\t\n\r]/i;

export function endpointsOf(bases: readonly string[]): Endpoints {
  if (bases.length === 0) throw new OptionsError('endpoints', bases, 'at least one base URL');
  const targets = bases.map((base, index) => {
    const url = URL.parse(base);
    if (!url || !/^https?:/.test(base) || /[?#]/.test(base) || url.username || url.password) {
      // The message must not contain a password.
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

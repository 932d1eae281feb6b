import { OptionsError } from 'holdfast';

/** Base URLs that are as good as each other. */
export interface Endpoints {
  /** Their names: the URL without a slash at the end. */
  readonly targets: readonly string[];
  /** `path`, relative or from the root, below `target`. */
  resolve(target: string, path: string): string;
}

export function endpointsOf(bases: readonly string[]): Endpoints {
  if (bases.length === 0) throw new OptionsError('endpoints', bases, 'at least one base URL');
  const targets = bases.map((base, index) => {
    const url = URL.parse(base);
    if (!url || !/^https?:/.test(base) || /[?#]/.test(base) || url.username || url.password) {
      // A password is not for whoever reads the message.
      const shown = url?.password ? url.protocol : base;
      const wanted = 'an absolute http or https URL without a query and without credentials';
      throw new OptionsError(`endpoints[${index}]`, shown, wanted);
    }
    return url.href.replace(/\/+$/, '');
  });
  return {
    targets: [...new Set(targets)],
    resolve: (target, path) =>
      target + (path.startsWith('/') || path.startsWith('?') || path === '' ? path : `/${path}`),
  };
}

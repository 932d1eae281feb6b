import { isIP } from 'node:net';
import { policyTable } from '@holdfast/config';
import { OptionsError, type PolicySpec, policy } from 'holdfast';
import {
  atPath,
  type Field,
  flag,
  group,
  isDocument,
  type SettingsOf,
  type SpecOf,
  type Table,
} from 'holdfast/fields';

/**
 * A block of settings that can be switched on and off. `true` means all defaults; `enabled: false` means off.
 */
export function block<T extends Table>(
  fields: T,
): Field<(SpecOf<T> & { enabled?: boolean | undefined }) | boolean, SettingsOf<T> | null> {
  const { kind, fields: all, read } = group({ enabled: flag(true), ...fields });
  return {
    kind,
    fields: all!,
    read(value, path) {
      const settings = value === true ? readDefaults(read, path) : read(value, path);
      if (!settings) return settings as null | undefined;
      const { enabled, ...rest } = settings as { enabled: boolean } & SettingsOf<T>;
      return enabled ? (rest as unknown as SettingsOf<T>) : null;
    },
  };
}

/**
 * Reads a block that is `true`, with all its defaults. If a field has no default, the error names that field.
 */
function readDefaults<T>(read: Field<unknown, T>['read'], path: string): T | undefined {
  try {
    return read(true, path);
  } catch (error) {
    if (!(error instanceof OptionsError)) throw error;
    const name = error.path.slice(path.length + 1);
    throw new OptionsError(path, true, `a block such as { ${name}: … }, with ${name} ${error.expected}`);
  }
}

const units: Readonly<Record<string, number>> = { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 };

/** A number of bytes, as a number or with a unit, such as `64KiB`. */
export type Size = number | `${number}${'B' | 'KiB' | 'MiB' | 'GiB'}` | 'unlimited';

export function size(defaultValue?: Size): Field<Size, number> {
  return {
    kind: 'a size such as "64KiB"',
    default: defaultValue,
    words: { unlimited: Infinity },
    read(value) {
      if (value === 'unlimited') return Infinity;
      if (typeof value === 'number') return Number.isInteger(value) && value >= 0 ? value : undefined;
      const [, amount, unit = ''] =
        /^(\d+(?:\.\d+)?)(B|KiB|MiB|GiB)$/.exec(typeof value === 'string' ? value : '') ?? [];
      return amount === undefined ? undefined : Math.floor(Number(amount) * units[unit]!);
    },
  };
}

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** An address such as `8080`, `:8080` or `[::1]:8080`. Without a host it is the loopback address. */
export const address: Field<string | number, Address> = {
  kind: 'a port, or an address such as "127.0.0.1:8080"',
  read(value) {
    const [, bracketed, plain, port] =
      /^(?:(?:\[([^\]]+)\]|([^:[\]]*)):)?(\d{1,5})$/.exec(String(value)) ?? [];
    if (port === undefined || Number(port) > 65_535) return undefined;
    if (bracketed !== undefined && isIP(bracketed) !== 6) return undefined;
    return { host: bracketed || plain || '127.0.0.1', port: Number(port) };
  },
};

export const instanceUrl: Field<string, string> = {
  kind: 'a URL such as "http://10.0.0.1:3000", without a path',
  read(value) {
    const url = typeof value === 'string' && /^https?:\/\//.test(value) ? URL.parse(value) : null;
    if (url?.pathname !== '/' || /[?#]/.test(value as string) || url.username || url.password)
      return undefined;
    return url.origin;
  },
};

/** Refuses paths that servers could read differently, such as those with dots or escaped slashes. */
export const pathField: Field<string, string> = {
  kind: 'a path such as "/orders"',
  read: (value) =>
    typeof value === 'string' &&
    /^\/[!-~]*$/.test(value) &&
    !/[?#\\]|\/\.{1,2}(\/|$)|%2f|%2e|%5c/i.test(value)
      ? value
      : undefined,
};

export const hostPattern: Field<string, string> = {
  kind: 'a host name such as "api.example.com" or "*.example.com"',
  read: (value) =>
    typeof value === 'string' && /^(\*\.)?[\w-]+(\.[\w-]+)*$/.test(value) ? value.toLowerCase() : undefined,
};

export const methodField: Field<string, string> = {
  kind: 'a method such as "GET"',
  read: (value) =>
    typeof value === 'string' && /^[A-Za-z-]+$/.test(value) ? value.toUpperCase() : undefined,
};

export const headerName: Field<string, string> = {
  kind: 'a header name',
  read: (value) =>
    typeof value === 'string' && /^[\w!#$%&'*+.^`|~-]+$/.test(value) ? value.toLowerCase() : undefined,
};

export const headerValue: Field<string | number | boolean, string> = {
  kind: 'a header value in one line',
  read: (value) =>
    typeof value !== 'object' && /^[\t -~]*$/.test(String(value)) ? String(value) : undefined,
};

/** A policy document, or the name of a policy in the file. `false`: off. */
export const policyField: Field<string | PolicySpec | boolean, string | PolicySpec | null> = {
  kind: 'a policy, or the name of one under policies',
  fields: policyTable,
  read(value, path) {
    if (value === false) return null;
    if (value === true) return {};
    if (typeof value === 'string') return value === '' ? undefined : value;
    return isDocument(value) ? checkedPolicy(value as PolicySpec, path) : undefined;
  },
};

function checkedPolicy(document: PolicySpec, path: string): PolicySpec {
  // This policy is created only to validate the document. With a name, it would be registered in this
  // process.
  const { name: _, ...fields } = document;
  atPath(path, () => policy(fields));
  return document;
}

/** How callers are distinguished: by address (`client`), or by the value of a header (`header:x-api-key`). */
export function callerField<const W extends string>(
  defaultValue: Caller<W> | undefined,
  ...words: W[]
): Field<Caller<W>, Caller<W>> {
  return {
    kind: `${[...words, 'header:<name>'].join(' or ')}`,
    default: defaultValue,
    read(value) {
      if (words.includes(value as W)) return value as W;
      const [, name] = /^header:([\w-]+)$/.exec(String(value)) ?? [];
      return name === undefined ? undefined : `header:${name.toLowerCase()}`;
    },
  };
}

/** How callers are distinguished: one of the words `W`, or the value of a header. */
export type Caller<W extends string> = W | `header:${string}`;

import { isDocument } from 'holdfast/fields';

type Fields = Readonly<Record<string, unknown>>;

/** A scenario that can be read, although the document has mistakes. */
export interface SoundPart {
  readonly input: object;
  /** False: the field at `path` is a placeholder, or depends on a placeholder. */
  isSound(path: string): boolean;
}

/**
 * Replaces each item that has a mistake, such as a service or a fault, by a placeholder. So conflicts between
 * the other items can be reported too. `wrong` has the paths of all mistakes. Returns undefined if the
 * services or the clients are not maps.
 */
export function soundPart(input: Fields, wrong: readonly string[]): SoundPart | undefined {
  const { services, clients } = input;
  if (!isDocument(services) || !isDocument(clients)) return undefined;
  const isWrong = (path: string) => wrong.some((each) => isAt(each, path));
  const [anyService = ''] = Object.keys(services);
  const placeholders: Record<string, (item: unknown) => unknown> = {
    services: serviceLike,
    clients: () => ({ to: anyService, arrivals: { constant: '1/s' } }),
    policies: () => ({}),
    faults: () => ({ kind: 'stall', service: anyService, from: '0s' }),
    expect: () => ({ metric: 'success', atLeast: 0 }),
    damage: () => ({ metric: 'success', atLeast: 0 }),
    id: () => 'unknown',
    duration: () => '1s',
  };
  const replaced: string[] = [];
  const sound: Record<string, unknown> = { id: 'unknown', duration: '1s' };
  for (const [key, value] of Object.entries(input)) {
    const placeholder = Object.hasOwn(placeholders, key) ? placeholders[key] : undefined;
    const replace = (path: string, item: unknown) => {
      if (!isWrong(path)) return item;
      replaced.push(path);
      return placeholder?.(item);
    };
    if (key === 'id' || key === 'duration' || !placeholder) sound[key] = replace(key, value);
    else if (wrong.includes(key)) sound[key] = undefined;
    else if (isDocument(value))
      sound[key] = Object.fromEntries(
        Object.entries(value).map(([name, item]) => [name, replace(`${key}.${name}`, item)]),
      );
    else sound[key] = [value].flat().map((item, index) => replace(`${key}[${index}]`, item));
  }
  // An unknown field at the top of the scenario has no placeholder, so it is removed.
  for (const path of wrong) if (!Object.hasOwn(placeholders, path)) delete sound[path];
  const isServiceReplaced = replaced.some((path) => path.startsWith('services.'));
  return {
    input: sound,
    isSound(path) {
      // A bound in `expect` or `damage` may name a call between two services. A placeholder makes no calls,
      // so such a bound cannot be checked.
      if (isServiceReplaced && /^(expect|damage)\[/.test(path)) return false;
      return !replaced.some((each) => isAt(path, each));
    },
  };
}

/**
 * Returns a placeholder with the routes of the service `item`, and with everything that a fault may refer to.
 */
function serviceLike(item: unknown): object {
  const { routes } = Object(item) as { routes?: unknown };
  const names = isDocument(routes) ? Object.keys(routes) : [];
  return {
    instances: Number.MAX_SAFE_INTEGER,
    cache: { keys: 1 },
    routes: Object.fromEntries(names.map((name) => [name, {}])),
  };
}

function isAt(path: string, field: string): boolean {
  return path === field || path.startsWith(`${field}.`) || path.startsWith(`${field}[`);
}

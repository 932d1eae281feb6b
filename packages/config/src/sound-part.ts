import { isDocument } from 'holdfast/fields';

type Fields = Readonly<Record<string, unknown>>;

/** A scenario that can be read, although the document has mistakes. */
export interface SoundPart {
  readonly input: object;
  /** False: the field at `path` is a placeholder, or depends on one. */
  isSound(path: string): boolean;
}

/**
 * Replaces each service, each group of clients, each fault and so on that has a mistake by a placeholder. So
 * conflicts between the rest of a scenario can be found and told together with the mistakes. `wrong` are the
 * paths of all mistakes. Returns undefined if the services or the clients are no maps.
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
  // An unknown field of the scenario itself has no placeholder, and must not be read.
  for (const path of wrong) if (!Object.hasOwn(placeholders, path)) delete sound[path];
  const isServiceReplaced = replaced.some((path) => path.startsWith('services.'));
  return {
    input: sound,
    isSound(path) {
      // A bound may be about a call between services, which a placeholder does not have.
      if (isServiceReplaced && /^(expect|damage)\[/.test(path)) return false;
      return !replaced.some((each) => isAt(path, each));
    },
  };
}

/** A service that has the routes of `item`, and all that a fault may be about. */
function serviceLike(item: unknown): object {
  const { routes } = Object(item) as { routes?: unknown };
  const names = isDocument(routes) ? Object.keys(routes) : [];
  return {
    instances: Number.MAX_SAFE_INTEGER,
    cache: { keys: 1 },
    routes: Object.fromEntries(names.map((name) => [name, {}])),
  };
}

/** Whether `path` is the field `field`, or inside of it. */
function isAt(path: string, field: string): boolean {
  return path === field || path.startsWith(`${field}.`) || path.startsWith(`${field}[`);
}

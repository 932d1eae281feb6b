import { type OptionsError, type PolicySpec, policy } from 'holdfast';
import { isDocument } from 'holdfast/fields';
import { mistakeOf } from './mistakes.ts';

type Fields = Record<string, unknown>;

/**
 * Returns all conflicts between fields of a policy. `policy()` throws only the first conflict, so each
 * conflict is removed from a copy until none is left. The fields at the paths `wrong` are invalid and are
 * left out.
 */
export function* conflictsIn(input: object, wrong: readonly string[]): Generator<OptionsError> {
  const { name: _, ...copy } = structuredClone(input) as Fields;
  for (const path of wrong) takeOut(copy, path);
  // The patience in the document is invalid, so replace it. The replacement conflicts with no other field.
  if (wrong.includes('patience')) copy.patience = Number.MAX_SAFE_INTEGER;
  const told = new Set<string>();
  // Each round removes a field, so the loop ends.
  while (true) {
    const conflict = mistakeOf(() => policy(copy as PolicySpec));
    if (!conflict) return;
    if (!told.has(conflict.path)) yield conflict;
    told.add(conflict.path);
    if (!takeOut(copy, conflict.path)) return;
  }
}

/**
 * Removes the field at `path` from a policy. If the field is missing, removes the group that should contain
 * it. Returns false if there was nothing to remove.
 */
function takeOut(spec: Fields, path: string): boolean {
  const [, list = '', index = ''] = /^(retryOn|retryOnly)\[(\d+)\]$/.exec(path) ?? [];
  const items = spec[list];
  if (Array.isArray(items)) {
    // The item is replaced by a valid function and not removed, so that the other items keep their index.
    items[Number(index)] = () => undefined;
    return true;
  }
  const [top = '', ...inner] = path.replace(/\[.*/, '').split('.');
  if (!Object.hasOwn(spec, top)) return false;
  const last = inner.pop();
  const group = inner.reduce<unknown>((at, key) => Object(at)[key], spec[top]);
  // `base` and `cap` of a backoff depend on each other, so both are left out.
  if (top !== 'backoff' && last !== undefined && isDocument(group) && Object.hasOwn(group, last))
    delete (group as Fields)[last];
  else delete spec[top];
  return true;
}

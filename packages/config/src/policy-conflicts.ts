import { type OptionsError, type PolicySpec, policy } from 'holdfast';
import { isDocument } from 'holdfast/fields';
import { mistakeOf } from './mistakes.ts';

type Fields = Record<string, unknown>;

/**
 * Returns the conflicts between fields of a policy. Fields with the paths `wrong` are invalid, so they are left
 * out. A policy throws only its first conflict: each conflict is taken out of a copy, until there is none.
 */
export function* conflictsIn(input: object, wrong: readonly string[]): Generator<OptionsError> {
  const { name: _, ...copy } = structuredClone(input) as Fields;
  for (const path of wrong) takeOut(copy, path);
  // An explicit patience that conflicts with nothing, because we do not know which one was meant.
  if (wrong.includes('patience')) copy.patience = Number.MAX_SAFE_INTEGER;
  const told = new Set<string>();
  // Each round takes something out, so this ends.
  while (true) {
    const conflict = mistakeOf(() => policy(copy as PolicySpec));
    if (!conflict) return;
    if (!told.has(conflict.path)) yield conflict;
    told.add(conflict.path);
    if (!takeOut(copy, conflict.path)) return;
  }
}

/**
 * Takes the field at `path` out of a policy. If the policy does not have it, takes out the group that lacks it.
 * Returns false if there was nothing to take out.
 */
function takeOut(spec: Fields, path: string): boolean {
  const [, list = '', index = ''] = /^(retryOn|retryOnly)\[(\d+)\]$/.exec(path) ?? [];
  const items = spec[list];
  if (Array.isArray(items)) {
    // The other items keep their index. This function replaces the item, because it is always valid.
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

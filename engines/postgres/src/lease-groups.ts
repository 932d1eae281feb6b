import type { Lease } from '@holdfast/contracts';

/** Leases of one topic, as arguments of SQL functions. Events that were leased together share a token. */
export interface LeaseGroups {
  readonly tokens: readonly number[];
  readonly counts: readonly number[];
  readonly seqs: readonly number[];
  /** For each number in `seqs`, the index of its lease in the batch. */
  readonly places: readonly number[];
}

/** Groups leases by token. Invalid and repeated leases are left out; their result is `lease_lost`. */
export function groupLeases(leases: readonly Lease[], places: Iterable<number> = leases.keys()): LeaseGroups {
  const groups = new Map<number, Map<number, number>>();
  for (const place of places) {
    const [token, seq] = tokenParts(leases[place]!.token);
    if (token === undefined || seq === undefined) continue;
    const group = groups.get(token) ?? new Map<number, number>();
    groups.set(token, group);
    if (!group.has(seq)) group.set(seq, place);
  }
  const all = [...groups.values()];
  return {
    tokens: [...groups.keys()],
    counts: all.map(({ size }) => size),
    seqs: all.flatMap((group) => [...group.keys()]),
    places: all.flatMap((group) => [...group.values()]),
  };
}

function tokenParts(text: string): (number | undefined)[] {
  const dot = text.indexOf('.');
  const parts = [Number(text.slice(0, dot)), Number(text.slice(dot + 1))];
  return dot > 0 && parts.every((part) => Number.isSafeInteger(part) && part > 0) ? parts : [];
}

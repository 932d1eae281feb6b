import type { Lease } from '@holdfast/contracts';

/** Leases of one topic, sorted by the hand they are in, as the functions of the schema take them. */
export interface Hands {
  readonly tokens: readonly number[];
  /** Events of each hand. */
  readonly counts: readonly number[];
  readonly seqs: readonly number[];
  /** Where each of `seqs` was given. */
  readonly places: readonly number[];
}

/** Tokens that we never gave, and a lease that is named twice, are in no hand: they are lost. */
export function handsOf(leases: readonly Lease[], places: Iterable<number> = leases.keys()): Hands {
  const hands = new Map<number, Map<number, number>>();
  for (const place of places) {
    const [token, seq] = tokenParts(leases[place]!.token);
    if (token === undefined || seq === undefined) continue;
    const hand = hands.get(token) ?? new Map<number, number>();
    hands.set(token, hand);
    if (!hand.has(seq)) hand.set(seq, place);
  }
  const all = [...hands.values()];
  return {
    tokens: [...hands.keys()],
    counts: all.map(({ size }) => size),
    seqs: all.flatMap((hand) => [...hand.keys()]),
    places: all.flatMap((hand) => [...hand.values()]),
  };
}

function tokenParts(text: string): (number | undefined)[] {
  const dot = text.indexOf('.');
  const parts = [Number(text.slice(0, dot)), Number(text.slice(dot + 1))];
  return dot > 0 && parts.every((part) => Number.isSafeInteger(part) && part > 0) ? parts : [];
}

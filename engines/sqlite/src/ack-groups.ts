import type { Token } from './event-row.ts';
import type { AnySettlement } from './settlement-batch.ts';

/**
 * Acknowledgements with the same lease and the same marks (names of handlers). A few SQL statements settle
 * all of them.
 */
export interface AckGroup {
  readonly leaseId: number;
  readonly topic: string;
  readonly marks: readonly string[];
  readonly indexes: number[];
  readonly seqs: number[];
}

const noMarks: readonly string[] = [];

/** Groups acknowledgements without a `commit`. `others` has the indexes of all other settlements. */
export function sortOut(
  batch: readonly AnySettlement[],
  tokens: readonly (Token | undefined)[],
): { groups: AckGroup[]; others: number[] } {
  const groups = new Map<string, AckGroup>();
  const others: number[] = [];
  let last: AckGroup | undefined;
  for (const [index, settlement] of batch.entries()) {
    const token = tokens[index];
    if (!token || settlement.kind !== 'ack' || settlement.commit) {
      others.push(index);
      continue;
    }
    const { leaseId, seq } = token;
    const { lease, marks = noMarks } = settlement;
    if (last?.leaseId !== leaseId || !isSame(last.marks, marks)) {
      const name = JSON.stringify([leaseId, marks]);
      last = groups.get(name) ?? { leaseId, topic: lease.topic, marks, indexes: [], seqs: [] };
      groups.set(name, last);
    }
    last.indexes.push(index);
    last.seqs.push(seq);
  }
  const isMixed = groups.size > 1 || (groups.size > 0 && others.length > 0);
  if (isMixed && new Set(tokens.map((token) => token?.seq)).size < batch.length) {
    return { groups: [], others: [...batch.keys()] };
  }
  return { groups: [...groups.values()], others };
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a === b || (a.length === b.length && a.every((name, index) => name === b[index]));
}

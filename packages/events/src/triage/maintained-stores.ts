import type { Presence } from '@holdfast/contracts';

const maintained = new Map<Presence, number>();

/**
 * Records that `maintenance` runs in this process for the store of `presence`. The returned function removes
 * this record.
 */
export function noteMaintenance(presence: Presence | undefined): () => void {
  if (!presence) return () => {};
  const change = (by: number) => maintained.set(presence, (maintained.get(presence) ?? 0) + by);
  change(1);
  let isOver = false;
  return () => {
    if (!isOver) change(-1);
    isOver = true;
  };
}

export function isMaintained(presence: Presence): boolean {
  return (maintained.get(presence) ?? 0) > 0;
}

import type { RefObject } from 'preact';
import { useKeys } from '../keys.ts';

/** The keys `j` and `k` move the focus between rows, and `x` selects the row with the focus. */
export function useRowKeys(
  box: RefObject<HTMLElement | null>,
  pick: (value: string) => void,
  pickAll: () => void,
): void {
  const rows = () => [...(box.current?.querySelectorAll<HTMLElement>('a[data-row]') ?? [])];
  const here = () => rows().findIndex((row) => row.closest('tr')?.contains(document.activeElement));
  const move = (by: number) => {
    const all = rows();
    all[Math.min(all.length - 1, Math.max(0, here() + by))]?.focus();
  };
  useKeys({
    j: { says: 'next row', run: () => move(1) },
    k: { says: 'previous row', run: () => move(here() < 0 ? 1 : -1) },
    x: {
      says: 'choose the row',
      run: () => {
        const value = rows()[here()]?.dataset.row;
        if (value !== undefined && value !== '') pick(value);
      },
    },
    X: { says: 'choose all that match', run: pickAll },
  });
}

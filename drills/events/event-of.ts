import type { NewEvent } from '@holdfast/contracts';

const lanes = 20;

/** The nth event of the drill: the same in every process and every repetition. */
export function eventOf(number: number): NewEvent & { readonly id: string; readonly key: string } {
  return {
    id: `01990000-0000-7000-8000-${String(number).padStart(12, '0')}`,
    key: `lane ${number % lanes}`,
    payload: JSON.stringify({ number }),
  };
}

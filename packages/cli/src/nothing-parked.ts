import { isEmptyFilter, type ParkedFilter } from '@holdfast/contracts';
import { many } from './count-text.ts';
import type { OpenStore } from './store.ts';

/** Says whether nothing is parked at all, or only nothing that matches the filter. */
export async function nothingParked({ triage }: OpenStore, filter: ParkedFilter): Promise<string> {
  const parked = isEmptyFilter(filter) ? 0 : await triage.count({});
  if (parked === 0) return 'Nothing is parked here.';
  return `Nothing that is parked here matches; ${many(parked, 'event')} without the filter.`;
}

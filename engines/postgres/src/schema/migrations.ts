import { inspection } from './inspection.ts';
import { keyOrder } from './key-order.ts';
import { keys } from './keys.ts';
import { leasing } from './leasing.ts';
import { publishing } from './publishing.ts';
import { settling } from './settling.ts';
import { tables } from './tables.ts';

export interface Migration {
  /** Versions count from 1 without gaps. */
  readonly version: number;
  /**
   * The lowest schema version that a release of this package must know to work with this schema. It stays low while
   * migrations only add tables, columns or functions.
   */
  readonly oldest: number;
  /** The SQL of the migration. It runs in a transaction, with the schema on the search path. */
  readonly sql: string;
}

/** A released migration is never edited; a change is a new migration at the end. */
export const migrations: readonly Migration[] = [
  {
    version: 1,
    oldest: 1,
    sql: [tables, keyOrder, publishing, leasing, settling, inspection, keys].join('\n'),
  },
];

import { inspection } from './inspection.ts';
import { keyOrder } from './key-order.ts';
import { keys } from './keys.ts';
import { leasing } from './leasing.ts';
import { publishing } from './publishing.ts';
import { settling } from './settling.ts';
import { tables } from './tables.ts';

export interface Migration {
  /** From 1, without gaps. */
  readonly version: number;
  /** The oldest version of this package's schema that still works on it: smaller while only things are added. */
  readonly oldest: number;
  /** Run in a transaction, with the schema on the search path. */
  readonly sql: string;
}

/** Never edited once released: a change is another one. */
export const migrations: readonly Migration[] = [
  {
    version: 1,
    oldest: 1,
    sql: [tables, keyOrder, publishing, leasing, settling, inspection, keys].join('\n'),
  },
];

import { actsOnWaiting } from './acts-on-waiting.ts';
import { controls } from './controls.ts';
import { headers } from './headers.ts';
import { inspection } from './inspection.ts';
import { journalChanging } from './journal-changing.ts';
import { journalClaiming } from './journal-claiming.ts';
import { journalRecording } from './journal-recording.ts';
import { journalTables } from './journal-tables.ts';
import { keyOrder } from './key-order.ts';
import { keys } from './keys.ts';
import { leasing } from './leasing.ts';
import { moving } from './moving.ts';
import { parkedCounts } from './parked-counts.ts';
import { presence } from './presence.ts';
import { publishing } from './publishing.ts';
import { rateLimits } from './rate-limits.ts';
import { settling } from './settling.ts';
import { tables } from './tables.ts';

export interface Migration {
  readonly version: number;
  /** The lowest schema version that a release of this package must know to use this schema. */
  readonly oldest: number;
  /** The SQL runs in a transaction, with the schema on the search path. */
  readonly sql: string;
}

const events = [tables, keyOrder, publishing, leasing, settling, controls, inspection, actsOnWaiting, moving];
const others = [parkedCounts, headers, keys, rateLimits, presence];
const journal = [journalTables, journalRecording, journalClaiming, journalChanging];

/** Never edit a released migration. Add a new one at the end. */
export const migrations: readonly Migration[] = [
  { version: 1, oldest: 1, sql: [...events, ...others, ...journal].join('\n') },
];

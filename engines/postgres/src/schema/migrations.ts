import { inspection } from './version-1/inspection.ts';
import { keyOrder } from './version-1/key-order.ts';
import { keys } from './version-1/keys.ts';
import { leasing } from './version-1/leasing.ts';
import { publishing } from './version-1/publishing.ts';
import { settling } from './version-1/settling.ts';
import { tables } from './version-1/tables.ts';
import { headers } from './version-2/headers.ts';
import { inspection as inspection2 } from './version-2/inspection.ts';
import { leasing as leasing2 } from './version-2/leasing.ts';
import { moving } from './version-2/moving.ts';
import { parkedCounts } from './version-2/parked-counts.ts';
import { presence } from './version-2/presence.ts';
import { settling as settling2 } from './version-2/settling.ts';
import { tables as tables2 } from './version-2/tables.ts';
import { changing } from './version-3/changing.ts';
import { claiming } from './version-3/claiming.ts';
import { recording } from './version-3/recording.ts';
import { tables as tables3 } from './version-3/tables.ts';

export interface Migration {
  readonly version: number;
  /** The lowest schema version that a release of this package must know to use this schema. */
  readonly oldest: number;
  /** The SQL runs in a transaction, with the schema on the search path. */
  readonly sql: string;
}

/** Never edit a released migration. Add a new one at the end. */
export const migrations: readonly Migration[] = [
  {
    version: 1,
    oldest: 1,
    sql: [tables, keyOrder, publishing, leasing, settling, inspection, keys].join('\n'),
  },
  {
    version: 2,
    // Releases that know only version 1 look for replays in another table.
    oldest: 2,
    sql: [tables2, parkedCounts, headers, leasing2, settling2, inspection2, moving, presence].join('\n'),
  },
  {
    version: 3,
    oldest: 2,
    sql: [tables3, recording, claiming, changing].join('\n'),
  },
];

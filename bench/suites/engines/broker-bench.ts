import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Engine } from '@holdfast/contracts';
import { openSqlite } from '@holdfast/sqlite';
import type { ServiceName } from '../../../scripts/services/catalog.ts';
import { startOwn } from '../../../scripts/services/start-service.ts';
import type { Contestant, EventCase } from '../events/event-case.ts';
import { type Drain, emptying } from './drain.ts';
import { type OurLoad, ours } from './ours.ts';

/** What an engine is compared with, on a server of its own. */
export interface BrokerBench {
  readonly service: ServiceName;
  readonly settings?: Readonly<Record<string, string>>;
  /** Events of a round. */
  readonly events: number;
  open(url: string, store?: Engine): Engine;
  /** A consumer of the same client without us. */
  bare(url: string, topic: string): Promise<Drain>;
  readonly peers: Readonly<Record<string, (url: string, topic: string) => Promise<Drain>>>;
}

const warmUpRounds = 3;
const rate = { unit: 'events/s', better: 'higher', by: 'processor' } as const;

export function casesOf(name: string, bench: BrokerBench): readonly EventCase[] {
  const { events: count, open, bare, peers } = bench;
  return [
    {
      ...rate,
      case: `${name} process`,
      bars: [{ toFloorMin: 0.5 }],
      contestants: () =>
        onServer(bench, async (url) => {
          const field: Record<string, Contestant> = {
            floor: emptying(await bare(url, 'bare'), count),
            ours: await ours(() => open(url), 'ours', { count }),
          };
          for (const [peer, open] of Object.entries(peers))
            field[peer] = emptying(await open(url, 'peer'), count);
          return field;
        }),
    },
    {
      ...rate,
      case: `${name} process, with a ledger`,
      contestants: () =>
        onServer(bench, async (url) => ({
          floor: emptying(await bare(url, 'bare'), count),
          ours: await besideStore(bench, url, { count, isMarked: true }),
        })),
    },
    {
      ...rate,
      case: `${name} process, 1 % retried`,
      contestants: () =>
        onServer(bench, async (url) => ({
          floor: await ours(() => open(url), 'calm', { count }),
          ours: await ours(() => open(url), 'failing', { count, failsOneIn: 100 }),
        })),
    },
  ];
}

/** With a SQLite file beside the broker, which marks each event. */
async function besideStore({ open }: BrokerBench, url: string, load: OurLoad): Promise<Contestant> {
  const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-bench-'));
  const store = await openSqlite({ file: path.join(folder, 'store.db') });
  const { round, close } = await ours(() => open(url, store), 'ours', load);
  return {
    round,
    async close() {
      await close();
      await store.close();
      await rm(folder, { recursive: true });
    },
  };
}

/** A server for one case: other load on it would falsify the figures. It ends with the last contestant. */
async function onServer(
  { service, settings = {} }: BrokerBench,
  contestants: (url: string) => Promise<Record<string, Contestant>>,
): Promise<Record<string, Contestant>> {
  const server = await startOwn(service, { settings, isMeasured: true });
  if (server.missing !== undefined) throw new Error(server.missing);
  const field = await contestants(server.url);
  // A consumer needs some 60,000 events until its code is compiled.
  for (let round = 0; round < warmUpRounds; round++)
    for (const { round: warmUp } of Object.values(field)) await warmUp();
  let open = Object.keys(field).length;
  return Object.fromEntries(
    Object.entries(field).map(([name, { round, close }]) => [
      name,
      {
        round,
        async close() {
          await close();
          open -= 1;
          if (open === 0) await server.stop();
        },
      },
    ]),
  );
}

import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Engine } from '@holdfast/contracts';
import { openSqlite } from '@holdfast/sqlite';
import type { ServiceName } from '../../../scripts/services/catalog.ts';
import { startOwn } from '../../../scripts/services/start-service.ts';
import { cpuNsOf, processTree } from '../../processor-time.ts';
import type { Contestant, EventCase } from '../events/event-case.ts';
import { type Drain, emptying } from './drain.ts';
import { type OurLoad, ours } from './ours.ts';

/** What an engine is compared with, on a server of its own. */
export interface BrokerBench {
  readonly service: ServiceName;
  readonly settings?: Readonly<Record<string, string>>;
  /** Events of a round: so many that what the compiler learns in it does not count. */
  readonly events: number;
  /** The processor time of the server counts, too: how a consumer acknowledges is paid for there. */
  readonly countsServer?: boolean;
  open(url: string, store?: Engine): Engine;
  /** A consumer of the same client without us. */
  bare(url: string, topic: string): Promise<Drain>;
  readonly peers: Peers;
  /** Peers of which one in a hundred events fails at first. */
  readonly retryingPeers?: Peers;
}

type Peers = Readonly<Record<string, (url: string, topic: string) => Promise<Drain>>>;

const warmUpRounds = 3;
const rate = { unit: 'events/s', better: 'higher', by: 'processor' } as const;

export function casesOf(name: string, bench: BrokerBench): readonly EventCase[] {
  const { events: count, open, bare, peers, retryingPeers = {} } = bench;
  return [
    {
      ...rate,
      case: `${name} process`,
      bars: [{ toFloorMin: 0.5 }],
      contestants: () =>
        onServer(bench, async (url, serverNs) => ({
          floor: emptying(await bare(url, 'bare'), count, serverNs),
          ours: await ours(() => open(url), 'ours', { count, serverNs }),
          ...(await drainsOf(peers, url, count, serverNs)),
        })),
    },
    {
      ...rate,
      case: `${name} process, with a ledger`,
      contestants: () =>
        onServer(bench, async (url, serverNs) => ({
          floor: emptying(await bare(url, 'bare'), count, serverNs),
          ours: await besideStore(bench, url, { count, serverNs, isMarked: true }),
        })),
    },
    {
      ...rate,
      case: `${name} process, 1 % retried`,
      contestants: () =>
        onServer(bench, async (url, serverNs) => ({
          floor: await ours(() => open(url), 'calm', { count, serverNs }),
          ours: await ours(() => open(url), 'failing', { count, serverNs, failsOneIn: 100 }),
          ...(await drainsOf(retryingPeers, url, count, serverNs)),
        })),
    },
  ];
}

async function drainsOf(
  peers: Peers,
  url: string,
  count: number,
  serverNs: () => number,
): Promise<Record<string, Contestant>> {
  const drains: Record<string, Contestant> = {};
  for (const [peer, open] of Object.entries(peers))
    drains[peer] = emptying(await open(url, 'peer'), count, serverNs);
  return drains;
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
  { service, settings = {}, countsServer = false }: BrokerBench,
  contestants: (url: string, serverNs: () => number) => Promise<Record<string, Contestant>>,
): Promise<Record<string, Contestant>> {
  const server = await startOwn(service, { settings, isMeasured: true });
  if (server.missing !== undefined) throw new Error(server.missing);
  const processes = countsServer ? processTree(server.pid) : [];
  const serverNs = () => processes.reduce((sum, pid) => sum + cpuNsOf(pid), 0);
  const field = await contestants(server.url, serverNs);
  // A consumer needs some 100,000 events until its code is compiled.
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

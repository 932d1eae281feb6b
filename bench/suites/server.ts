import { service } from '../../scripts/services/service.ts';
import { type CaseResult, compare, type Samples } from '../compare.ts';
import type { TimedResult } from '../harness.ts';
import type { Suite } from '../suite.ts';
import { startContestant } from './server/contestant.ts';
import { type ServerField, serverFields } from './server/fields.ts';
import { startLoad } from './server/load.ts';
import { paired, type RoundSamples } from './server/rounds.ts';

/** Many, because sockets are noisier than functions. */
const ROUNDS = 32;

/** Each sitting starts the servers anew. */
const SITTINGS = 2;

/**
 * What a request costs its server. Each server has a process, together with a floor of its own, which counts its own time;
 * who sends is another one, the same for all. Only one server is asked at a time.
 */
export const suite: Suite = {
  async run({ rounds = ROUNDS, caseContains }) {
    const redis = await service('redis');
    if (redis.missing !== undefined) console.error(`Without the cases of Redis: ${redis.missing}.`);
    const redisUrl = redis.missing === undefined ? redis.url : undefined;
    const results: CaseResult[] = [];
    for (const field of serverFields(redisUrl)) {
      if (!field.name.includes(caseContains)) continue;
      console.error(`${field.name} …`);
      results.push(await measure(field, redisUrl, rounds));
    }
    return results;
  },
  notes: [
    'ns: processor time of the server for a request, from 32 connections over loopback. Each server shares a process with a floor',
    'of its own, which it is compared with, and is started anew once in between; who sends is another process. In a round one',
    'process after the other is asked, whose two servers take short turns of a few hundred requests.',
    'floor: the framework with the same route and nothing before it. Limits are never reached; every key is new.',
  ],
};

async function measure(
  field: ServerField,
  redisUrl: string | undefined,
  rounds: number,
): Promise<TimedResult> {
  const { name, bars } = field;
  const cpu: Samples[] = [];
  const wall: Samples[] = [];
  for (let sitting = 0; sitting < SITTINGS; sitting++) {
    const part = Math.floor(((sitting + 1) * rounds) / SITTINGS) - Math.floor((sitting * rounds) / SITTINGS);
    if (part === 0) continue;
    const samples = await sit(field, redisUrl, part);
    cpu.push(samples.cpu);
    wall.push(samples.wall);
  }
  const subject = { case: name, unit: 'ns', better: 'lower' } as const;
  const { ours, floor, peers, toFloor, toBestPeer } = compare(subject, joined(wall));
  return {
    ...compare({ ...subject, bars }, joined(cpu)),
    wall: { ours, floor, peers, toFloor, toBestPeer },
  };
}

async function sit(
  { name, kind, contestants }: ServerField,
  redisUrl: string | undefined,
  rounds: number,
): Promise<RoundSamples> {
  using started = new DisposableStack();
  const load = started.use(await startLoad());
  const servers = await Promise.all(
    Object.keys(contestants)
      .filter((contestant) => contestant !== 'floor')
      .map(async (contestant) => started.use(await startContestant({ case: name, contestant, redisUrl }))),
  );
  return await paired(servers, kind, load, rounds);
}

function joined(all: readonly Samples[]): Samples {
  const peers = Object.keys(all[0]!.peers);
  return {
    floor: all.flatMap(({ floor }) => floor),
    ours: all.flatMap(({ ours }) => ours),
    peers: Object.fromEntries(peers.map((name) => [name, all.flatMap((each) => each.peers[name]!)])),
  };
}

import { service } from '../../scripts/services/service.ts';
import { type CaseResult, compare } from '../compare.ts';
import type { TimedResult } from '../harness.ts';
import type { Suite } from '../suite.ts';
import { startContestant } from './server/contestant.ts';
import { type ServerField, serverFields } from './server/fields.ts';
import { startLoad } from './server/load.ts';
import { paired } from './server/rounds.ts';

/** Many, because sockets are noisier than functions. */
const ROUNDS = 31;

/**
 * What a request costs its server. Each server is a process of its own and counts its own time; who sends is another one,
 * the same for all. Only one server is asked at a time.
 */
export const suite: Suite = {
  async run({ rounds = ROUNDS, caseContains }) {
    const redis = await service('redis');
    if (redis.missing !== undefined) console.error(`Without the cases of Redis: ${redis.missing}.`);
    const redisUrl = redis.missing === undefined ? redis.url : undefined;
    const results: CaseResult[] = [];
    for (const field of serverFields(redisUrl)) {
      if (field.name.includes(caseContains)) results.push(await measure(field, redisUrl, rounds));
    }
    return results;
  },
  notes: [
    'ns: processor time of the server for a request, from 32 connections over loopback. Every server is a process of its own,',
    'who sends is another. Rounds are made of short turns, a few hundred requests each, that all servers take in changing order.',
    'floor: the framework with the same route and nothing before it. Limits are never reached; every key is new.',
  ],
};

async function measure(
  { name, kind, bars, contestants }: ServerField,
  redisUrl: string | undefined,
  rounds: number,
): Promise<TimedResult> {
  using started = new DisposableStack();
  const load = started.use(await startLoad());
  const servers = [];
  for (const contestant of Object.keys(contestants)) {
    servers.push(started.use(await startContestant({ case: name, contestant, redisUrl })));
  }
  const { cpu, wall } = await paired(servers, kind, load, rounds);
  const subject = { case: name, unit: 'ns', better: 'lower' } as const;
  const { ours, floor, peers, toFloor, toBestPeer } = compare(subject, wall);
  return {
    ...compare({ ...subject, bars }, cpu),
    wall: { ours, floor, peers, toFloor, toBestPeer },
  };
}

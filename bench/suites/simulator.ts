import { type ChildProcess, fork } from 'node:child_process';
import path from 'node:path';
import { compare, type Samples } from '../compare.ts';
import type { Suite } from '../suite.ts';

const processFile = path.join(import.meta.dirname, 'simulator-process.ts');

const ROUNDS = 9;
/** Warm-up rounds: the compiler needs some time for code of many small functions. */
const WARM_UP_ROUNDS = 12;

const cases = [
  { case: 'sync attempts', ours: 'sync', peers: ['simjs'], oursMaxNs: 1_000 },
  { case: 'async attempts', ours: 'async', peers: ['simscript', 'fake timers'], oursMaxNs: 10_000 },
] as const;

export const suite: Suite = {
  async run({ rounds = ROUNDS, caseContains }) {
    const results = [];
    for (const { case: name, ours, peers, oursMaxNs } of cases) {
      if (!name.includes(caseContains)) continue;
      const subject = { case: name, unit: 'ns', better: 'lower', bars: [{ oursMax: oursMaxNs }] } as const;
      results.push(compare(subject, await measure(ours, peers, rounds)));
    }
    return results;
  },
  notes: [
    'Processor time of one attempt, all threads of the process, setting up 10,000 clients included.',
    'Each contestant has a process of its own and they take turns: what one has taught the compiler is nobody else’s.',
    'The floor is a bare heap that takes the earliest of 10,000 events and adds another, twice for each attempt.',
    'Peers simulate the same clients with nothing but timers: no policies, no service, no figures.',
  ],
};

async function measure(ours: string, peers: readonly string[], rounds: number): Promise<Samples> {
  const players = ['floor', ours, ...peers].map((name) => ({ process: start(name), ns: [] as number[] }));
  try {
    for (let round = -WARM_UP_ROUNDS; round < rounds; round++) {
      for (const [index, player] of players.entries()) {
        // Peers are slow enough without their warm-up.
        if (round < -1 && index > 1) continue;
        const ns = await play(player.process, round);
        if (round >= 0) player.ns.push(ns);
      }
    }
  } finally {
    for (const player of players) player.process.disconnect();
  }
  const [floor, own, ...others] = players.map((player) => player.ns);
  return {
    floor: floor!,
    ours: own!,
    peers: Object.fromEntries(peers.map((name, index) => [name, others[index]!])),
  };
}

function start(name: string): ChildProcess {
  return fork(processFile, [name], { execArgv: ['--conditions=holdfast-source', '--no-warnings'] });
}

function play(contestant: ChildProcess, round: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const left = () => reject(new Error(`${contestant.spawnargs.at(-1)} ended within a round.`));
    contestant.once('exit', left);
    contestant.once('message', (ns) => {
      contestant.off('exit', left);
      resolve(ns as number);
    });
    contestant.send(round);
  });
}

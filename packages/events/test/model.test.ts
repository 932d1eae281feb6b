import { MemoryStorage, type MemoryTransaction, memoryEngine } from '@holdfast/contracts/memory';
import { commit, consumer, discard, ExclusiveRun, type HandlerResult, park, snooze } from '@holdfast/events';
import fc from 'fast-check';
import { after, scripted, seededRandom, virtualClock } from 'holdfast/testing';
import { describe, expect, test } from 'vitest';
import { down } from './stage.ts';

/** What a handler does with an event, attempt by attempt; the last is done again for every attempt after it. */
type Deed =
  | 'commit'
  | 'transient'
  | 'fatal'
  | 'snooze'
  | 'park'
  | 'discard'
  | 'die'
  | 'slow'
  | 'commit fails';

const deed = fc.constantFrom<Deed>(
  'commit',
  'commit',
  'commit',
  'transient',
  'snooze',
  'slow',
  'commit fails',
  'die',
);
const lastDeed = fc.constantFrom<Deed>('commit', 'commit', 'commit', 'transient', 'fatal', 'park', 'discard');
const life = fc.tuple(fc.array(deed, { maxLength: 3 }), lastDeed).map(([deeds, last]) => [...deeds, last]);

const scenario = fc.record({
  lives: fc.array(fc.tuple(life, fc.nat({ max: 3 })), { minLength: 1, maxLength: 25 }),
  ordering: fc.constantFrom('none', 'key'),
  parkedKeys: fc.constantFrom('release', 'block'),
  concurrency: fc.integer({ min: 1, max: 6 }),
  processes: fc.integer({ min: 1, max: 3 }),
  seed: fc.nat(),
});

type Scenario = typeof scenario extends fc.Arbitrary<infer S> ? S : never;

/** Plays a scenario until nothing moves any more; processes that die are started again. */
async function play({ lives, ordering, parkedKeys, concurrency, processes, seed }: Scenario) {
  const clock = virtualClock();
  const storage = new MemoryStorage();
  const outside = memoryEngine({ clock, storage, random: seededRandom('outside', seed) });
  const attempts = new Map<string, number>();
  /** Effects that committed, in order: `id key`. */
  const effects: { id: string; key: string }[] = [];
  let starts = 0;

  async function start(): Promise<void> {
    let isDead = false;
    const random = seededRandom('process', seed, ++starts);
    const engine = memoryEngine({
      clock,
      storage,
      random,
      beforeWrite: () => {
        if (isDead) throw new Error('the process has died');
      },
    });

    async function handle(id: string, key: string): Promise<HandlerResult<MemoryTransaction> | undefined> {
      const attempt = (attempts.get(id) ?? 0) + 1;
      attempts.set(id, attempt);
      const deeds = lives[Number(id.slice(1))]![0];
      const done: Deed = deeds[Math.min(attempt, deeds.length) - 1]!;
      if (done === 'slow') await scripted(clock, after(random() * 8000, 1))();
      if (done === 'transient') throw down();
      if (done === 'fatal') throw new TypeError('a mistake');
      if (done === 'snooze') return snooze(random() * 2000);
      if (done === 'park') return park('no');
      if (done === 'discard') return discard('no');
      if (done === 'die') {
        isDead = true;
        void start();
        return new Promise<never>(() => {});
      }
      return commit((tx) => {
        if (done === 'commit fails') throw down('the commit failed');
        tx.put(`${id} ${attempt}`, '');
        tx.defer(() => effects.push({ id, key }));
      });
    }

    await consumer<unknown, MemoryTransaction>({
      ...{ engine, topic: 'orders', clock, random, ordering, concurrency },
      // Without an order, the consumer refuses to block keys.
      parkedKeys: ordering === 'key' ? parkedKeys : 'release',
      lease: '3s',
      policy: { attempts: 4, backoff: { base: '100ms' } },
      exclusiveRun: new ExclusiveRun(),
      handler: ({ id, key }) => handle(id, key ?? ''),
    }).start();
  }

  await outside.broker.declare('orders', { ordering });
  await outside.broker.publish(
    'orders',
    lives.map(([, key], index) => ({ id: `e${index}`, key: `k${key}`, payload: '{}' })),
  );
  for (let each = 0; each < processes; each++) await start();
  await clock.advance('5m');

  const ids = lives.map((_, index) => `e${index}`);
  const parked = new Set<string>();
  for (const id of ids) if (await outside.triage.get(id)) parked.add(id);
  const { items } = await outside.broker.waiting('orders', { limit: 1000 });
  return { ids, effects, parked, waiting: items, lives };
}

describe('whatever handlers do and whenever processes die', () => {
  test('nothing is lost, each effect is made once, and the order of a key is kept', {
    timeout: 120_000,
  }, async () => {
    await fc.assert(
      fc.asyncProperty(scenario, async (given) => {
        const { ids, effects, parked, waiting, lives } = await play(given);

        const made = effects.map(({ id }) => id);
        expect(made.length, 'an effect was made twice').toBe(new Set(made).size);

        const isDone = new Set(made);
        const behind = new Set(waiting.map(({ id }) => id));
        for (const [index, id] of ids.entries()) {
          const places = [isDone.has(id), parked.has(id), behind.has(id) && !parked.has(id)].filter(Boolean);
          const isDiscarded = places.length === 0 && lives[index]![0].includes('discard');
          expect(places.length === 1 || isDiscarded, `${id} is in ${places.length} places`).toBe(true);
        }
        // What still waits does so behind a parked event of its key, which was told to hold it.
        for (const { state } of waiting) {
          expect(
            given.ordering === 'key' && given.parkedKeys === 'block' && ['behind', 'blocking'],
          ).toContain(state);
        }
        if (given.ordering === 'none') return;
        for (const key of new Set(effects.map((effect) => effect.key))) {
          const order = effects.filter((effect) => effect.key === key).map(({ id }) => Number(id.slice(1)));
          expect(order, `the order of ${key}`).toEqual([...order].sort((a, b) => a - b));
        }
      }),
      { numRuns: 40 },
    );
  });
});

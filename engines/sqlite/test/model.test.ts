import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Lease, Leased, Settlement } from '@holdfast/contracts';
import { controlId, waitingStates } from '@holdfast/contracts';
import { type MemoryEngine, MemoryStorage, memoryEngine } from '@holdfast/contracts/memory';
import { openSqlite, type SqliteEngine } from '@holdfast/sqlite';
import fc from 'fast-check';
import { seededRandom, type VirtualClock, virtualClock } from 'holdfast/testing';
import { afterAll, expect, test } from 'vitest';

/** The reference engine and this one, to which the same things happen. */
interface Pair {
  readonly clock: VirtualClock;
  readonly memory: MemoryEngine;
  sqlite: SqliteEngine;
  readonly file: string;
  /** Leases of the same event, as each of them gave it. */
  readonly leases: { memory: Lease; sqlite: Lease }[];
  events: number;
}

interface Step {
  run(pair: Pair): Promise<void>;
}

/** Says itself, where a script has to be read. */
function step(text: string, run: Step['run']): Step {
  return Object.assign(Object.create(null), { run, [fc.toStringMethod]: () => text });
}

const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-model-'));
afterAll(() => rmSync(folder, { recursive: true }));
let files = 0;

const act = { who: 'ada', why: 'a test' };
const error = { type: 'Error', message: 'no', fingerprint: 'f' };
const ordered = 'ordered';
const loose = 'loose';

const topic = fc.constantFrom(ordered, loose);
const key = fc.constantFrom(undefined, 'a', 'b', 'c');
const ms = fc.constantFrom(0, 10, 50, 100);
const pick = fc.nat(8);
const kind = fc.constantFrom<Settlement['kind'][]>(
  'ack',
  'ack',
  'retry',
  'snooze',
  'return',
  'park',
  'discard',
  'reroute',
);

const steps: fc.Arbitrary<Step>[] = [
  fc.tuple(topic, key, ms, fc.integer({ min: 1, max: 12 })).map(([name, lane, delayMs, count]) =>
    step(`publish ${count} to ${name} for ${lane} in ${delayMs}`, async (pair) => {
      const events = Array.from({ length: count }, () => ({
        ...{ id: idOf(++pair.events), payload: `event ${pair.events}`, delayMs },
        ...(lane !== undefined && { key: lane, tenant: `tenant of ${lane}` }),
      }));
      await same(pair, ({ broker }) => broker.publish(name, events));
    }),
  ),
  fc.tuple(topic, pick, key).map(([name, back, lane]) =>
    step(`publish the last but ${back} to ${name} for ${lane}`, async (pair) => {
      const id = idOf(Math.max(1, pair.events - back));
      const event = { id, payload: 'again', ...(lane !== undefined && { key: lane }) };
      await same(pair, ({ broker }) => broker.publish(name, [event]));
    }),
  ),
  fc
    .record({
      name: topic,
      limit: fc.integer({ min: 1, max: 6 }),
      leaseMs: fc.constantFrom(20, 60, 200),
      runMax: fc.integer({ min: 1, max: 4 }),
      suspects: fc.boolean(),
      share: fc.constantFrom(undefined, 0.3, 0.5),
    })
    .map(({ name, share, ...rest }) =>
      step(`lease from ${name}, share ${share}: ${JSON.stringify(rest)}`, async (pair) => {
        const request = { owner: 'w', ...rest, ...(share !== undefined && { retriesShare: share }) };
        const [given, expected] = await both(pair, ({ broker }) => broker.lease(name, request));
        expect(seen(given)).toEqual(seen(expected));
        // One that is under quarantine may be told: who asks for it gets nothing, and then it is not told again.
        expect(given.suspects).toBeGreaterThanOrEqual(rest.suspects ? 0 : Math.min(1, expected.suspects));
        for (const [index, { lease }] of given.deliveries.entries()) {
          pair.leases.push({ sqlite: lease, memory: expected.deliveries[index]!.lease });
        }
      }),
    ),
  fc
    .array(fc.record({ pick, kind, delayMs: ms, holdsKey: fc.boolean() }), { minLength: 1, maxLength: 8 })
    .map((ends) =>
      step(`settle ${JSON.stringify(ends)}`, async (pair) => {
        const chosen = ends.flatMap((end) => {
          const leases = pair.leases.at(-1 - end.pick);
          return leases ? [{ end, leases }] : [];
        });
        await same(pair, ({ broker, name }) =>
          broker.settle(
            chosen.map(({ end, leases }) => settlement(leases[name as 'sqlite' | 'memory'], end)),
          ),
        );
      }),
    ),
  fc
    .tuple(fc.uniqueArray(pick, { minLength: 1, maxLength: 6 }), fc.constantFrom(20, 100))
    .map(([picks, leaseMs]) =>
      step(`extend ${picks} by ${leaseMs}`, async (pair) => {
        const chosen = picks.flatMap((at) => pair.leases.at(-1 - at) ?? []);
        await same(pair, ({ broker, name }) =>
          broker.extend(
            chosen.map((leases) => leases[name as 'sqlite' | 'memory']),
            leaseMs,
          ),
        );
      }),
    ),
  fc.tuple(topic, fc.nat(30)).map(([name, at]) =>
    step(`unblock and retry now ${at} of ${name}`, async (pair) => {
      const ids = [idOf(at), idOf(at + 1)];
      await same(pair, ({ broker }) => broker.unblock(name, ids, act));
      await same(pair, ({ broker }) => broker.retryNow(name, ids, act));
    }),
  ),
  fc.tuple(topic, fc.constantFrom('a', 'b'), fc.constantFrom(0, 40, Infinity)).map(([name, lane, forMs]) =>
    step(`quarantine ${lane} of ${name} for ${forMs}`, async (pair) => {
      const control = { kind: 'quarantine', topic: name, key: lane } as const;
      if (forMs === 0) await same(pair, ({ broker }) => broker.controls.lift(controlId(control), act));
      else
        await both(pair, ({ broker }) =>
          broker.controls.impose(control, act, forMs === Infinity ? undefined : forMs),
        );
    }),
  ),
  fc.tuple(topic, fc.constantFrom(0, 40, Infinity)).map(([name, forMs]) =>
    step(`pause the retries of ${name} for ${forMs}`, async (pair) => {
      const control = { kind: 'pause', topic: name, only: 'retries' } as const;
      if (forMs === 0) await same(pair, ({ broker }) => broker.controls.lift(controlId(control), act));
      else
        await both(pair, ({ broker }) =>
          broker.controls.impose(control, act, forMs === Infinity ? undefined : forMs),
        );
    }),
  ),
  fc
    .tuple(topic, fc.subarray([...waitingStates]), fc.constantFrom('a', undefined), fc.constantFrom(1, 3))
    .map(([name, state, key, limit]) =>
      step(`${limit} of ${name} that are ${state} with key ${key}, by due time`, async (pair) => {
        const question = { state, order: 'due', ...(key && { key }) } as const;
        const bounds = [-50, 0, 10, 30];
        await same(pair, ({ broker }) => broker.due(name, bounds));
        await same(pair, async ({ broker }) => {
          const { items, cursor } = await broker.waiting(name, { limit }, question);
          if (cursor === undefined) return items.map(({ id }) => id);
          const next = await broker.waiting(name, { limit, cursor }, question);
          return [...items, ...next.items].map(({ id }) => id);
        });
      }),
    ),
  fc.constantFrom(5, 25, 70, 150).map((time) => step(`pass ${time}`, ({ clock }) => clock.advance(time))),
  topic.map((name) =>
    step(`count ${name}`, async (pair) => {
      const [given, { nextDueInMs: _, ...expected }] = await both(pair, ({ broker }) => broker.counts(name));
      expect(given).toMatchObject(expected);
    }),
  ),
];

const restart = {
  weight: 1,
  arbitrary: fc.constant(
    step('restart', async (pair) => {
      await pair.sqlite.close();
      pair.sqlite = await openSqlite({ file: pair.file, clock: pair.clock });
    }),
  ),
};

test('does what the reference does, whatever happens', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.oneof(...steps.map((arbitrary) => ({ arbitrary, weight: 4 })), restart), {
        minLength: 10,
        maxLength: 60,
        size: 'max',
      }),
      async (script) => {
        const pair = await start();
        try {
          for (const { run } of script) await run(pair);
          for (const name of [ordered, loose]) {
            await same(pair, async ({ broker }) => {
              const { items } = await broker.waiting(name, { limit: 1000 });
              // Tokens and owners aside: everything that is waiting, where, and in which order.
              return items.map(({ owner: __, ...item }) => item);
            });
          }
          await same(pair, async ({ triage }) => {
            const { items } = await triage.list({}, { limit: 1000 });
            return items
              .map(({ id, parkings, stop }) => ({ id, parkings, stop }))
              .sort((a, b) => (a.id < b.id ? -1 : 1));
          });
        } finally {
          await pair.sqlite.close();
        }
      },
    ),
    { numRuns: 50 },
  );
});

async function start(): Promise<Pair> {
  const clock = virtualClock({ epochMs: 1 });
  const file = path.join(folder, `${++files}.db`);
  const memory = memoryEngine({ clock, storage: new MemoryStorage(), random: seededRandom('model') });
  const pair: Pair = {
    clock,
    memory,
    file,
    sqlite: await openSqlite({ file, clock }),
    leases: [],
    events: 0,
  };
  await both(pair, ({ broker }) => broker.declare(ordered, { ordering: 'key' }));
  await both(pair, ({ broker }) => broker.declare(loose));
  return pair;
}

async function both<T>(
  { sqlite, memory }: Pair,
  ask: (engine: MemoryEngine | SqliteEngine) => Promise<T>,
): Promise<[T, T]> {
  return [await ask(sqlite), await ask(memory)];
}

async function same<T>(pair: Pair, ask: (engine: MemoryEngine | SqliteEngine) => Promise<T>): Promise<void> {
  const [given, expected] = await both(pair, ask);
  expect(given).toEqual(expected);
}

/** What two leases must have in common. */
function seen({ deliveries }: Leased) {
  return deliveries.map(({ lease: _, ...delivery }) => delivery);
}

function idOf(number: number): string {
  return `01890000-0000-7000-8000-${String(number).padStart(12, '0')}`;
}

function settlement(
  lease: Lease,
  { kind, delayMs, holdsKey }: { kind: Settlement['kind']; delayMs: number; holdsKey: boolean },
): Settlement {
  if (kind === 'retry') return { lease, kind, delayMs, error, story: [], holdsKey };
  if (kind === 'snooze') return { lease, kind, delayMs };
  if (kind === 'park') return { lease, kind, stop: 'poison', story: [], holdsKey };
  if (kind === 'discard') return { lease, kind, because: 'unwanted' };
  if (kind === 'reroute') return { lease, kind, to: lease.topic === ordered ? loose : ordered };
  return { lease, kind };
}

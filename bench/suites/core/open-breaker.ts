import { Effect } from 'effect';
import { any, breaker, definePolicy, retry } from 'holdfast';
import { Circuit, SlidingCountBreaker } from 'mollitia';
import Opossum from 'opossum';
import type { Case } from '../../harness.ts';
import { answer, bare } from './operation.ts';
import { cockatielConsecutive, effectBreaker, mollitiaOptions, opossumOptions } from './peer-breakers.ts';

const HOUR_MS = 3_600_000;
const KEY = 'target';
const DOWN = 'down';

// Opened the honest way, by failures, and for an hour. The time is read at each refusal, as in production.
const open = definePolicy([retry, breaker, any])({
  attempts: 1,
  retryOn: 'any',
  breaker: { slow: false, openFor: ['1h', '1h'] },
});
const cockatielOpen = cockatielConsecutive(HOUR_MS);
const opossumOpen = new Opossum(fail, opossumOptions(HOUR_MS));
const mollitiaOpen = new Circuit({
  func: fail,
  options: { modules: [new SlidingCountBreaker(mollitiaOptions(HOUR_MS))] },
});
const effectOpen = effectBreaker(HOUR_MS).execute(Effect.promise(fail), { key: KEY });

await failUntilOpen(() => open.run(fail));
await failUntilOpen(() => cockatielOpen.execute(fail));
await failUntilOpen(() => opossumOpen.fire());
await failUntilOpen(() => mollitiaOpen.execute());
await failUntilOpen(() => Effect.runPromise(effectOpen));

const refusals: Case['peers'] = {
  async cockatiel(times) {
    for (let i = 0; i < times; i++) {
      try {
        await cockatielOpen.execute(answer);
      } catch {}
    }
  },
  async opossum(times) {
    for (let i = 0; i < times; i++) {
      try {
        await opossumOpen.fire();
      } catch {}
    }
  },
  async mollitia(times) {
    for (let i = 0; i < times; i++) {
      try {
        await mollitiaOpen.execute();
      } catch {}
    }
  },
};

export const breakerOpenTry: Case = {
  case: 'breaker open, try',
  unit: 'ns',
  better: 'lower',
  bars: [{ toFloorMax: 4 }],
  floor: bare,
  async ours(times) {
    for (let i = 0; i < times; i++) await open.try(answer);
  },
  // Of the peers only Effect can tell a refusal without throwing it.
  peers: {
    ...refusals,
    async Effect(times) {
      for (let i = 0; i < times; i++) await Effect.runPromiseExit(effectOpen);
    },
  },
};

export const breakerOpen: Case = {
  case: 'breaker open',
  unit: 'ns',
  better: 'lower',
  bars: [{ toFloorMax: 22 }],
  floor: bare,
  async ours(times) {
    for (let i = 0; i < times; i++) {
      try {
        await open.run(answer);
      } catch {}
    }
  },
  peers: {
    ...refusals,
    async Effect(times) {
      for (let i = 0; i < times; i++) {
        try {
          await Effect.runPromise(effectOpen);
        } catch {}
      }
    },
  },
};

async function fail(): Promise<number> {
  throw new Error(DOWN);
}

/** Fails often enough for everyone; refused at the end, or the case would not measure what it says. */
async function failUntilOpen(call: () => Promise<unknown>): Promise<void> {
  let last: unknown;
  for (let i = 0; i < 50; i++) {
    last = await call().then(
      () => undefined,
      (error: unknown) => error,
    );
  }
  if (!(last instanceof Error) || last.message === DOWN) {
    throw new Error(`A breaker did not open after 50 failures; its last answer was ${String(last)}.`);
  }
}

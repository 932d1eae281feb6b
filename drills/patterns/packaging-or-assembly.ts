import { assemblies } from '@holdfast/assembly';
import { memoryEngine } from '@holdfast/contracts/memory';
import { policy } from 'holdfast';
import { seededRandom, type VirtualClock, virtualClock } from 'holdfast/testing';
import * as bad from '../../examples/snippets/src/patterns/packaging-or-assembly-bad.ts';
import * as good from '../../examples/snippets/src/patterns/packaging-or-assembly-good.ts';
import { figure } from '../published/figure.ts';
import { type PatternRun, shown } from './pattern-run.ts';
import { byHand, runOf } from './simulated.ts';

const depths = [1, 2, 3, 4];

/** A chain of services, of which the last fails for 15 s. */
function layers(depth: number, tells: string): string {
  const services = Array.from({ length: depth }, (_, tier) =>
    tier < depth - 1
      ? `t${tier}: { calls: [{ to: t${tier + 1}, tells: [${tells}] }] }`
      : `t${tier}: { time: 10ms }`,
  );
  return `
id: layers
duration: 30s
services: { ${services.join(', ')} }
clients: { user: { to: t0, arrivals: { poisson: 20/s } } }
faults: [{ kind: errorRate, value: 1, service: t${depth - 1}, from: 10s, until: 25s }]
`;
}

const ORDERS = 200;
const failing = [0, 0.1, 0.2, 0.3, 0.4];

const TEXT = `
*Left: a request passes through four services. If each service makes three attempts, the last service gets {badCalls} calls for one request of the user. If only the
first service retries, the last service gets {goodCalls} calls. There is no budget and no breaker. Right: 200 orders have three steps each, and each attempt of a
step fails three times in ten. If the whole function runs again after a failure, the card is charged {badCharges} times for {badDone} placed orders. As an assembly,
the card is charged {goodCharges} times, and {goodDone} orders are placed. The number of orders that are parked because six attempts of a step failed is
{goodParked}.*`;

interface Placed {
  readonly share: number;
  readonly charges: number;
  readonly done: number;
}

export async function packagingOrAssembly(): Promise<PatternRun> {
  const threeAttempts = { ...byHand, attempts: 3 };
  const leafCalls = (tells: string) =>
    depths.map((depth): [number, number] => [
      depth,
      runOf(layers(depth, tells), threeAttempts).figure('multiplication', {
        service: `t${depth - 1}`,
        from: 10_000,
        until: 25_000,
      }),
    ]);
  const [all, one] = [leafCalls(''), leafCalls('ownership')];
  const [whole, steps]: [Placed[], Placed[]] = [[], []];
  for (const share of failing) {
    whole.push(await placeAll(share, wholeAgain));
    steps.push(await placeAll(share, asAssembly));
  }
  const charges = (runs: readonly Placed[]) =>
    runs.map((run): [number, number] => [100 * run.share, run.charges / Math.max(1, run.done)]);
  const atThree = (runs: readonly Placed[]) => runs.find(({ share }) => share === 0.3)!;
  return {
    plots: {
      'packaging-or-assembly': figure('Who retries', [
        {
          title: 'Packaging: calls of a leaf that is down',
          x: { says: 'services that pass the call on', ticks: depths },
          y: { says: 'for one call of the user', ticks: [1, 3, 9, 27, 81], isLog: true },
          curves: [
            { name: 'everybody retries', points: all },
            { name: 'Holdfast', points: one },
          ],
        },
        {
          title: 'Assembly: charges for an order',
          x: { says: 'attempts of a step that fail', ticks: [0, 10, 20, 30, 40], unit: ' %' },
          y: { says: 'charges for each order that is placed', ticks: [1, 2, 3, 4] },
          curves: [
            { name: 'the whole function again', points: charges(whole) },
            { name: 'Holdfast', points: charges(steps) },
          ],
        },
      ]),
    },
    texts: { caption: TEXT },
    figures: {
      badCalls: shown(all.at(-1)![1], 0),
      goodCalls: shown(one.at(-1)![1], 0),
      badCharges: shown(atThree(whole).charges),
      badDone: shown(atThree(whole).done),
      goodCharges: shown(atThree(steps).charges),
      goodDone: shown(atThree(steps).done),
      goodParked: shown(ORDERS - atThree(steps).done),
    },
  };
}

type Act = (order: string) => Promise<void>;
type PlaceAll = (shop: Record<'charge' | 'reserve' | 'ship', Act>, clock: VirtualClock) => Promise<number>;

/** A shop whose steps fail by chance before they do anything, so that each charge is one that happened. */
async function placeAll(share: number, place: PlaceAll): Promise<Placed> {
  const clock = virtualClock();
  const random = seededRandom('shop', 11);
  let charges = 0;
  const failBefore = (act: () => void) => async () => {
    if (random() < share) throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
    act();
  };
  const shop = {
    charge: failBefore(() => charges++),
    reserve: failBefore(() => {}),
    ship: failBefore(() => {}),
  };
  const done = await place(shop, clock);
  return { share, charges, done };
}

/** Six attempts, as a step has. */
const wholeAgain: PlaceAll = async (shop, clock) => {
  const six = policy(
    { attempts: 6, patience: '1h', budget: false, breaker: false },
    { clock, random: seededRandom('six') },
  );
  let done = 0;
  const all = Array.from({ length: ORDERS }, (_, order) =>
    bad.placeOrder(six, shop, `order-${order}`).then(
      () => done++,
      () => {},
    ),
  );
  await clock.runAll();
  await Promise.all(all);
  return done;
};

const asAssembly: PlaceAll = async (shop, clock) => {
  const engine = memoryEngine({ clock, random: seededRandom('ids') });
  const program = good.placeOrder(shop);
  const work = assemblies({ engine, programs: [program], clock, random: seededRandom('worker') });
  await work.run();
  for (let order = 0; order < ORDERS; order++)
    await work.start(program, `order-${order}`, { id: `order-${order}` });
  for (let minute = 0; minute < 10; minute++) {
    await clock.advance('1m');
    await new Promise((resolve) => setImmediate(resolve));
  }
  const { items } = await work.list({ state: 'done' }, { limit: 1000 });
  await work.stop({ grace: 0 });
  return items.length;
};

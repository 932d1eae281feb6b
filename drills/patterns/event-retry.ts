import { memoryEngine } from '@holdfast/contracts/memory';
import { policy } from 'holdfast';
import { seededRandom, virtualClock } from 'holdfast/testing';
import * as bad from '../../examples/snippets/src/patterns/event-retry-bad.ts';
import * as good from '../../examples/snippets/src/patterns/event-retry-good.ts';
import { figure } from '../published/figure.ts';
import { type PatternRun, shown } from './pattern-run.ts';

const EVENTS = 200;
const outages = [0, 15, 30, 45, 60, 120, 300, 600];

const TEXT = `
*One order a second is published, 200 orders in all. The payment service is down from the start. With six attempts and no breaker, an outage of 15 s parks
{badQuarter} events. An outage of 1 minute parks {badMinute} events, and an outage of 10 minutes parks {badTen} events. With a breaker but without \`dependsOn\`, an
outage of 10 minutes parks {plainTen} events. But handlers run {plainRuns} times and then fail or are refused. With \`dependsOn\`, {goodTen} events are parked,
handlers run {goodRuns} times in vain, and all 200 events are handled after the outage.*`;

interface Outage {
  readonly seconds: number;
  readonly parked: number;
  /** Handlers that ran while the service was down. */
  readonly runs: number;
  readonly done: number;
}

export async function eventRetry(): Promise<PatternRun> {
  const [bare, plain, depending]: [Outage[], Outage[], Outage[]] = [[], [], []];
  for (const seconds of outages) {
    bare.push(await outage(seconds, (_payment, charge, options) => bad.chargeOrders(charge, options)));
    plain.push(
      await outage(seconds, (payment, charge, options) =>
        bad.chargeOrders((order) => payment.run(() => charge(order)), options),
      ),
    );
    depending.push(await outage(seconds, good.chargeOrders));
  }
  const lost = depending.find(({ done }) => done !== EVENTS);
  if (lost) throw new Error(`${lost.done} of ${EVENTS} events were handled after ${lost.seconds} s`);
  const curves = (pick: (run: Outage) => number) =>
    (
      [
        ['six attempts', bare],
        ['a breaker alone', plain],
        ['Holdfast, with dependsOn', depending],
      ] as const
    ).map(([name, runs]) => ({
      name,
      points: runs.map((run): [number, number] => [run.seconds, pick(run)]),
    }));
  const x = { says: 'length of the outage', ticks: [0, 150, 300, 450, 600], unit: ' s' };
  const after = (runs: readonly Outage[], seconds: number) => runs.find((run) => run.seconds === seconds)!;
  return {
    plots: {
      'event-retry': figure('Events during an outage of what they need', [
        {
          title: 'Parked, for a person to replay',
          x,
          y: { says: 'of 200 events', ticks: [0, 50, 100, 150, 200] },
          curves: curves(({ parked }) => parked),
        },
        {
          title: 'Handlers that run in vain',
          x,
          y: { says: 'while the service is down', ticks: [1, 10, 100, 1000, 10_000], isLog: true },
          curves: curves(({ runs }) => runs),
        },
      ]),
    },
    texts: { caption: TEXT },
    figures: {
      badQuarter: shown(after(bare, 15).parked),
      badMinute: shown(after(bare, 60).parked),
      badTen: shown(after(bare, 600).parked),
      plainTen: shown(after(plain, 600).parked),
      plainRuns: shown(after(plain, 600).runs),
      goodTen: shown(after(depending, 600).parked),
      goodRuns: shown(after(depending, 600).runs),
    },
  };
}

let policies = 0;

/** The consumer of the page, on the memory engine and a virtual clock. */
async function outage(seconds: number, chargeOrders: typeof good.chargeOrders): Promise<Outage> {
  const clock = virtualClock();
  const engine = memoryEngine({ clock, random: seededRandom('ids') });
  const environment = { clock, random: seededRandom('payment') };
  const payment = policy({ name: `payment of run ${++policies}`, attempts: 1 }, environment);
  let isDown = seconds > 0;
  let done = 0;
  const charge = async () => {
    if (isDown) throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
    done++;
  };
  await engine.broker.declare('orders', { ordering: 'none' });
  const orders = chargeOrders(payment, charge, { engine, clock, random: seededRandom('consumer') });
  await orders.start();
  let runs = 0;
  const end = Math.max(seconds, EVENTS);
  for (let second = 0; second <= end; second++) {
    if (second === seconds) {
      isDown = false;
      runs = orders.state().counters.attempts;
    }
    if (second < EVENTS) await engine.broker.publish('orders', [{ id: `order-${second}`, payload: '{}' }]);
    await clock.advance('1s');
  }
  await clock.advance('10m');
  const { items } = await engine.triage.list({ topic: 'orders' }, { limit: 1000 });
  const stopping = orders.stop({ grace: 0 });
  await clock.advance('5s');
  await stopping;
  return { seconds, parked: items.length, runs, done };
}

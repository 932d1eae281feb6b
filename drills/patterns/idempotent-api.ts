import { chaosFetch } from '@holdfast/chaos';
import { memoryEngine } from '@holdfast/contracts/memory';
import { policy } from 'holdfast';
import { seededRandom, virtualClock } from 'holdfast/testing';
import * as bad from '../../examples/snippets/src/patterns/idempotent-api-bad.ts';
import * as good from '../../examples/snippets/src/patterns/idempotent-api-good.ts';
import { figure } from '../published/figure.ts';
import { type PatternRun, shown } from './pattern-run.ts';

const ORDERS = 1000;
/** The share of responses that are lost after the server has done the work. */
const losses = [0, 0.02, 0.05, 0.1, 0.15, 0.2];

const TEXT = `
*There are 1,000 orders, one every 100 ms. The network loses one response in ten after the server has charged the card. If the client sends requests again without a
key, {badTwice} cards are charged more than once. If the client sends each request only once, no card is charged twice, but {onceUnknown} customers do not know
whether they have paid. If all attempts of an order have the same key, {goodTwice} cards are charged twice, and {goodUnknown} customers do not know whether they have
paid.*`;

type Pay = (send: typeof fetch, order: string) => Promise<Response>;

interface Paid {
  readonly lost: number;
  /** Orders whose card was charged more than once. */
  readonly twice: number;
  /** Orders whose customer got no answer. */
  readonly unknown: number;
}

export async function idempotentApi(): Promise<PatternRun> {
  const [again, once, keyed]: [Paid[], Paid[], Paid[]] = [[], [], []];
  for (const lost of losses) {
    again.push(await shop(lost, () => bad.pay));
    once.push(await shop(lost, () => (send, order) => send(CHARGES, { method: 'POST', body: order })));
    keyed.push(
      await shop(lost, (clock) => {
        const its = policy({}, { clock, random: seededRandom('pay') });
        return (send, order) => good.pay(send, order, its);
      }),
    );
  }
  const curves = (pick: (paid: Paid) => number) =>
    (
      [
        ['again, without a key', again],
        ['sent once', once],
        ['Holdfast', keyed],
      ] as const
    ).map(([name, runs]) => ({
      name,
      points: runs.map((paid): [number, number] => [100 * paid.lost, pick(paid)]),
    }));
  const x = { says: 'responses that are lost', ticks: [0, 5, 10, 15, 20], unit: ' %' };
  const atTen = (runs: readonly Paid[]) => runs.find(({ lost }) => lost === 0.1)!;
  return {
    plots: {
      'idempotent-api': figure('Payments over a network that loses responses', [
        {
          title: 'Charged more than once',
          x,
          y: { says: 'of 1,000 orders', ticks: [0, 50, 100, 150, 200, 250] },
          curves: curves(({ twice }) => twice),
        },
        {
          title: 'Nobody knows whether it was paid',
          x,
          y: { says: 'of 1,000 orders', ticks: [0, 50, 100, 150, 200, 250] },
          curves: curves(({ unknown }) => unknown),
        },
      ]),
    },
    texts: { caption: TEXT },
    figures: {
      badTwice: shown(atTen(again).twice),
      onceUnknown: shown(atTen(once).unknown),
      goodTwice: shown(atTen(keyed).twice),
      goodUnknown: shown(atTen(keyed).unknown),
    },
  };
}

const CHARGES = 'https://payments.test/charges';

/** The API of the page behind a network that loses responses. A server without keys runs the same handler. */
async function shop(lost: number, client: (clock: ReturnType<typeof virtualClock>) => Pay): Promise<Paid> {
  const clock = virtualClock();
  const charges = new Map<string, number>();
  const charge = (order: string) => void charges.set(order, (charges.get(order) ?? 0) + 1);
  const { ledger } = memoryEngine({ clock, random: seededRandom('ledger') });
  const api = good.paymentsApi(ledger, charge, { clock, random: seededRandom('keys') });
  const send = chaosFetch(
    { seed: 7, faults: [{ kind: 'reset', rate: lost, direction: 'response' }] },
    {
      clock,
      fetch: async (input, init) => {
        const request = new Request(input, init);
        if (request.headers.has('idempotency-key')) return api(request);
        charge(await request.text());
        return new Response('charged', { status: 201 });
      },
    },
  );
  const pay = client(clock);
  let unknown = 0;
  for (let order = 0; order < ORDERS; order++) {
    const paying = pay(send, `order-${order}`).then(
      ({ status }) => status === 201,
      () => false,
    );
    let isPaid: boolean | undefined;
    void paying.then((is) => {
      isPaid = is;
    });
    const endsAt = clock.now() + 100;
    while (isPaid === undefined) {
      await clock.advance(1);
      await new Promise((resolve) => setImmediate(resolve));
    }
    if (!isPaid) unknown++;
    await clock.advance(Math.max(0, endsAt - clock.now()));
  }
  return { lost, twice: [...charges.values()].filter((times) => times > 1).length, unknown };
}

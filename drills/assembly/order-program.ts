import { setTimeout as pause } from 'node:timers/promises';
import { assembly, type Program, type StepOptions } from '@holdfast/assembly';
import { transient } from 'holdfast';
import { type Place, writeEffect } from './place.ts';

/** Each step with the steps that are on record when it begins. */
const stepsBefore = {
  charge: [],
  reserve: ['charge'],
  confirm: ['reserve'],
  print: ['charge'],
  stick: ['print'],
  book: ['confirm', 'stick'],
  pack: ['book'],
  'hand-over': ['pack'],
  notify: ['hand-over'],
  close: ['notify'],
} as const satisfies Record<string, readonly string[]>;

export type OrderStep = keyof typeof stepsBefore;

/** Steps whose effect is in the store: each is made exactly once. */
export const stepsWithin: readonly OrderStep[] = ['book', 'hand-over', 'close'];

/** All steps that must be finished when this one begins. */
export function finishedBefore(step: OrderStep): OrderStep[] {
  return stepsBefore[step].flatMap((before: OrderStep) => [before, ...finishedBefore(before)]);
}

/** Every place at which a process can be killed: around each step, each record and each claim. */
export const killPoints: readonly string[] = [
  ...['claim.before', 'claim.after', 'record.before', 'record.after'],
  ...Object.keys(stepsBefore).flatMap((step) => [`${step}.begun`, `${step}.effect`, `${step}.recorded`]),
];

export interface OrderPrograms {
  readonly order: Program<{ id: string }, string>;
  readonly all: readonly Program[];
}

const patient: StepOptions<string> = { policy: { attempts: 1000, backoff: { base: '2ms', cap: '20ms' } } };

/** Taking an order: parallel branches, transactions, a sleep and a child. Steps fail now and then. */
export function orderPrograms(
  place: Place,
  log: (line: string) => void,
  at: (point: string) => void,
): OrderPrograms {
  async function outside(id: string, step: OrderStep, key: string): Promise<string> {
    log(`ran ${id} ${step}`);
    at(`${step}.begun`);
    const roll = Math.random();
    if (roll < 0.05) throw transient(new Error('not now'));
    if (roll < 0.15) await pause(Math.random() * 20);
    log(`did ${id} ${step} ${key}`);
    at(`${step}.effect`);
    if (roll > 0.97) throw transient(new Error('too late'));
    return `${step} of ${id}`;
  }

  function within(id: string, step: OrderStep, tx: unknown): string | Promise<string> {
    log(`ran ${id} ${step}`);
    at(`${step}.begun`);
    const written = writeEffect(place, tx, id, step);
    const answer = () => {
      at(`${step}.effect`);
      return `${step} of ${id}`;
    };
    return written ? written.then(answer) : answer();
  }

  const shipping = assembly('shipping', { version: 1 }, async (step, { id }: { id: string }) => {
    await step.run('pack', ({ key }) => outside(id, 'pack', key), patient);
    at('pack.recorded');
    const parcel = await step.transaction('hand-over', (tx) => within(id, 'hand-over', tx));
    at('hand-over.recorded');
    return parcel;
  });

  const order = assembly('order', { version: 1 }, async (step, { id }: { id: string }) => {
    const paid = await step.run('charge', ({ key }) => outside(id, 'charge', key), patient);
    at('charge.recorded');
    const prepared = await step.all('prepare', {
      stock: async (branch) => {
        await branch.run('reserve', ({ key }) => outside(id, 'reserve', key), patient);
        at('reserve.recorded');
        const confirmed = await branch.run('confirm', ({ key }) => outside(id, 'confirm', key), patient);
        at('confirm.recorded');
        return confirmed;
      },
      label: async (branch) => {
        await branch.run('print', ({ key }) => outside(id, 'print', key), patient);
        at('print.recorded');
        const stuck = await branch.run('stick', ({ key }) => outside(id, 'stick', key), patient);
        at('stick.recorded');
        return stuck;
      },
    });
    const booked = await step.transaction('book', (tx) => within(id, 'book', tx));
    at('book.recorded');
    await step.sleep('nap', '20ms');
    const shipped = await step.child('ship', shipping, { id });
    const told = await step.run('notify', ({ key }) => outside(id, 'notify', key), patient);
    at('notify.recorded');
    const closed = await step.transaction('close', (tx) => within(id, 'close', tx));
    at('close.recorded');
    return [paid, prepared.stock, prepared.label, booked, shipped, told, closed].join(', ');
  });

  return { order: order as never, all: [order, shipping] as never };
}

/** The result of an order, whoever ran which part of it. */
export function expectedResult(id: string): string {
  const steps: OrderStep[] = ['charge', 'confirm', 'stick', 'book', 'hand-over', 'notify', 'close'];
  return steps.map((step) => `${step} of ${id}`).join(', ');
}

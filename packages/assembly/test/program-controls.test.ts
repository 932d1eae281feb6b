import { assembly } from '@holdfast/assembly';
import { type Control, controlId } from '@holdfast/contracts';
import { expect, test } from 'vitest';
import { stage } from './stage.ts';

const act = { who: 'ada', why: 'the bank is down' };

function setup() {
  const { open, pass } = stage();
  const ran: string[] = [];
  const order = assembly('order', async (step, name: string) => {
    await step.run('charge', () => ran.push(name));
    await step.sleep('rest', '1m');
    await step.run('ship', () => ran.push(`${name} shipped`), {});
    return name;
  });
  const invoice = assembly('invoice', async (step, name: string) => {
    await step.run('write', () => ran.push(name));
  });
  const work = open([order, invoice]);
  const impose = (control: Control, forMs?: number) => work.engine.controls.impose(control, act, forMs);
  const lift = (control: Control) => work.engine.controls.lift(controlId(control), act);
  return { work, order, invoice, ran, pass, impose, lift };
}

const pause: Control = { kind: 'pause', topic: 'assembly/order' };
const quarantine: Control = { kind: 'quarantine', topic: 'assembly/order', tenant: 'acme' };

test('a paused program begins nothing and goes on with nothing, and others run', async () => {
  const { work, order, invoice, ran, pass, impose, lift } = setup();
  await impose(pause);
  await work.run();
  await work.start(order, 'a');
  await work.start(invoice, 'b');
  await pass(10_000);
  expect(ran).toEqual(['b']);
  await lift(pause);
  await pass(3000);
  expect(ran).toEqual(['b', 'a']);
  await impose(pause);
  await pass(180_000);
  expect(ran).toEqual(['b', 'a']);
  await lift(pause);
  await pass(3000);
  expect(ran).toEqual(['b', 'a', 'a shipped']);
});

test('a pause that ends by itself is over for every process', async () => {
  const { work, order, ran, pass, impose } = setup();
  await impose(pause, 5000);
  await work.run();
  await work.start(order, 'a');
  await pass(3000);
  expect(ran).toEqual([]);
  await pass(5000);
  expect(ran).toEqual(['a']);
});

test('a tenant in quarantine waits, and others run', async () => {
  const { work, order, ran, pass, impose, lift } = setup();
  await work.run();
  const held = await work.start(order, 'held', { tenant: 'acme' });
  await pass(100);
  await impose(quarantine);
  await pass(3000);
  await work.start(order, 'new', { tenant: 'acme' });
  await work.start(order, 'other', { tenant: 'beta' });
  await pass(180_000, 100);
  expect(ran).toEqual(['held', 'other', 'other shipped']);
  await lift(quarantine);
  await pass(120_000, 100);
  expect(ran.slice(3).sort()).toEqual(['held shipped', 'new', 'new shipped']);
  expect(await held.result()).toBe('held');
});

test('an assembly in quarantine that is cancelled compensates', async () => {
  const { work, order, pass, impose } = setup();
  await impose(quarantine);
  await work.run();
  const it = await work.start(order, 'a', { tenant: 'acme' });
  await pass(1000);
  await it.cancel('the customer left');
  await pass(1000);
  expect((await it.status()).state).toBe('stopped');
});

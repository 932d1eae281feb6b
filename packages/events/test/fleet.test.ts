import { reportBytesMax } from '@holdfast/contracts';
import { memoryEngine } from '@holdfast/contracts/memory';
import { consumer, consumers, fleetState, joinFleet, maintenance } from '@holdfast/events';
import { breakerOf, type Policy, policy, policyOf } from 'holdfast';
import { virtualClock } from 'holdfast/testing';
import { describe, expect, onTestFinished, test } from 'vitest';
import { act, stage } from './stage.ts';

let names = 0;

/** A member of a fleet on virtual time, with one policy that has a breaker for the target `bank`. */
async function member() {
  const clock = virtualClock();
  const engine = memoryEngine({ clock });
  const name = `fleet ${++names}`;
  const made: Policy = policy({ name, retryOn: 'any', attempts: 2 }, { clock }) as Policy;
  await made.run(() => 1, { target: 'bank' });
  const fleet = joinFleet({ engine, service: 'checkout', version: '7', clock });
  await fleet.refresh();
  onTestFinished(() => fleet.stop());
  return { clock, engine, name, policy: made, fleet, breaker: () => breakerOf(name, 'bank')! };
}

describe('joinFleet', () => {
  test('shows the process with the states of its policies, and removes it when it stops', async () => {
    const { engine, fleet, name } = await member();
    const { processes } = await fleetState(engine);
    expect(processes).toMatchObject([
      { id: fleet.id, service: 'checkout', version: '7', pid: process.pid, leftOut: 0, notObeyed: [] },
    ]);
    expect(processes[0]!.policies).toContainEqual(expect.objectContaining({ name }));
    await fleet.stop();
    expect((await fleetState(engine)).processes).toEqual([]);
  });

  test('says whether the process runs maintenance for this store', async () => {
    const { engine, fleet, clock } = await member();
    const maintains = async () => {
      await fleet.refresh();
      return (await fleetState(engine)).processes.map((each) => each.maintains);
    };
    expect(await maintains()).toEqual([false]);
    const upkeep = maintenance({ engine, clock });
    const elsewhere = maintenance({ engine: memoryEngine({ clock }), clock });
    elsewhere.start();
    expect(await maintains()).toEqual([false]);
    upkeep.start();
    expect(await maintains()).toEqual([true]);
    await Promise.all([upkeep.stop(), elsewhere.stop()]);
    expect(await maintains()).toEqual([false]);
  });

  test('reports every 2 s, and a process that does not is forgotten after 10 s', async () => {
    const { clock, engine, fleet } = await member();
    await clock.advance('30s');
    const [first] = await engine.presence.processes();
    expect(clock.epochMs() - first!.heardAt).toBeLessThanOrEqual(2000);
    const other = { ...first!, id: 'dead' };
    await engine.presence.report(other);
    await clock.advance('9s');
    expect((await engine.presence.processes()).map(({ id }) => id).sort()).toEqual(['dead', fleet.id].sort());
    await clock.advance('2s');
    expect((await engine.presence.processes()).map(({ id }) => id)).toEqual([fleet.id]);
  });

  test('forces a breaker for a time, and lets go of it when the time is over', async () => {
    const { clock, engine, name, breaker } = await member();
    await engine.controls.impose(
      { kind: 'breaker', policy: name, target: 'bank', state: 'open' },
      act,
      60_000,
    );
    await clock.advance('2s');
    expect(breaker().forced).toBe('open');
    expect(breaker().forcedBecause).toBe('ann: a test');
    await clock.advance('59s');
    expect(breaker().forced).toBeUndefined();
  });

  test('a control of one target wins over one of the policy, and that over one of all policies', async () => {
    const { clock, engine, name, policy: made, breaker } = await member();
    await made.run(() => 1, { target: 'post' });
    await engine.controls.impose({ kind: 'breaker', policy: name, target: 'bank', state: 'closed' }, act);
    await engine.controls.impose({ kind: 'breaker', policy: '*', state: 'open' }, act);
    await clock.advance('2s');
    expect(breaker().forced).toBe('closed');
    expect(breakerOf(name, 'post')!.forced).toBe('open');
  });

  test('reaches a target that is first used after the control was set, and survives an update', async () => {
    const { clock, engine, name, policy: made } = await member();
    await engine.controls.impose({ kind: 'breaker', policy: name, state: 'open' }, act);
    await clock.advance('2s');
    await made.try(() => 1, { target: 'later' });
    await clock.advance('2s');
    expect(breakerOf(name, 'later')!.forced).toBe('open');
    made.update({ name, attempts: 3 });
    await engine.controls.lift(`breaker:${encodeURIComponent(name)}`, act);
    await clock.advance('2s');
    expect(breakerOf(name, 'later')!.forced).toBeUndefined();
  });

  test('switches retries off and on again, but never on what the application has switched off', async () => {
    const { clock, engine, name, policy: made } = await member();
    const off = { kind: 'retries', policy: name, state: 'off' } as const;
    const { id } = await engine.controls.impose(off, act);
    await clock.advance('2s');
    expect(made.plan.killSwitch.isOn).toBe(true);
    await engine.controls.lift(id, act);
    await clock.advance('2s');
    expect(made.plan.killSwitch.isOn).toBe(false);

    made.kill();
    await engine.controls.impose(off, act);
    await clock.advance('2s');
    await engine.controls.lift(id, act);
    await clock.advance('2s');
    expect(made.plan.killSwitch.isOn).toBe(true);
  });

  test('changes the mode without touching the document', async () => {
    const { clock, engine, name, policy: made } = await member();
    const { id } = await engine.controls.impose({ kind: 'mode', policy: name, mode: 'observe' }, act);
    await clock.advance('2s');
    expect(policyOf(name)!.settings.mode).toBe('observe');
    expect(made.spec).not.toHaveProperty('mode');
    await engine.controls.lift(id, act);
    await clock.advance('2s');
    expect(policyOf(name)!.settings.mode).toBe('enforce');
  });

  test('says which controls it cannot obey, and which it has not heard of', async () => {
    const { clock, engine, name, fleet } = await member();
    await engine.controls.impose({ kind: 'retries', policy: name, state: 'off' }, act);
    await engine.controls.impose({ kind: 'retries', policy: 'nobody has it', state: 'off' }, act);
    const heard = async () =>
      Object.fromEntries(
        (await fleetState(engine)).controls.map((each) => [
          'policy' in each.control && each.control.policy,
          each.heard[fleet.id],
        ]),
      );
    expect(await heard()).toEqual({ [name]: 'not_heard', 'nobody has it': 'not_heard' });
    await clock.advance('2s');
    expect(await heard()).toEqual({ [name]: 'obeyed', 'nobody has it': 'not_obeyed' });
  });

  test('keeps obeying while the store is away, until the time of the control is over', async () => {
    const clock = virtualClock();
    let isAway = false;
    const engine = memoryEngine({ clock });
    const name = `fleet ${++names}`;
    await policy({ name }, { clock }).run(() => 1, { target: 'bank' });
    const errors: unknown[] = [];
    const away = new Error('the store is away');
    const flaky = {
      presence: engine.presence,
      controls: {
        ...engine.controls,
        active: async () => (isAway ? Promise.reject(away) : engine.controls.active()),
      },
    };
    const fleet = joinFleet({ engine: flaky, service: 's', clock, onError: (error) => errors.push(error) });
    onTestFinished(() => fleet.stop());
    await engine.controls.impose({ kind: 'breaker', policy: name, state: 'open' }, act, 20_000);
    await clock.advance('2s');
    isAway = true;
    await clock.advance('10s');
    expect(breakerOf(name, 'bank')!.forced).toBe('open');
    expect(errors).toContain(away);
    await clock.advance('10s');
    expect(breakerOf(name, 'bank')!.forced).toBeUndefined();
  });

  test('keeps a report within 8 KiB, and keeps what needs attention', async () => {
    const { clock, engine, name, policy: made } = await member();
    for (let n = 0; n < 300; n++) await made.run(() => 1, { target: `host-${n}.example.com` });
    breakerOf(name, 'host-250.example.com')!.force('open', clock.now(), 'a test');
    await clock.advance('2s');
    const [process] = await engine.presence.processes();
    expect(Buffer.byteLength(JSON.stringify(process))).toBeLessThanOrEqual(reportBytesMax + 100);
    expect(process!.leftOut).toBeGreaterThan(0);
    expect(JSON.stringify(process!.policies)).toContain('host-250.example.com');
  });

  test.each([
    ['service', { service: '' }],
    ['every', { every: 0 }],
    ['every', { every: '1m' }],
    ['engine.presence', { engine: {} }],
    ['servise', { servise: 'x' }],
  ])('refuses a wrong %s', (path, wrong) => {
    const options = { engine: memoryEngine(), service: 'checkout', ...wrong };
    expect(() => joinFleet(options as never)).toThrow(path);
  });
});

describe('consumers', () => {
  test('lists those that run, with what they wait for', async () => {
    const scene = stage();
    const made = await scene.open({ name: 'registered' });
    const state = () => consumers().find(({ name }) => name === 'registered');
    expect(state()).toMatchObject({ status: 'running', paused: null, waitsFor: [] });
    await scene.engine.controls.impose({ kind: 'pause', topic: 'orders' }, act, 60_000);
    await scene.clock.advance('2s');
    expect(state()).toMatchObject({ paused: { who: 'ann', why: 'a test', only: null } });
    const stopping = made.stop();
    await scene.clock.advance('1m');
    await stopping;
    expect(state()).toBeUndefined();
  });

  test('a consumer that was never started is not listed', () => {
    consumer({ engine: memoryEngine(), topic: 'orders', name: 'idle one', handler: () => {} });
    expect(consumers().map(({ name }) => name)).not.toContain('idle one');
  });
});

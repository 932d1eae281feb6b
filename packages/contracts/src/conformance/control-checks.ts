import { type ActiveControl, type Control, controlId, type PolicyControl } from '../controls.ts';
import { ensure, expectLike, expectRejection } from './assertions.ts';
import { act, type Check, checksOf, payloads, type Stage } from './stage.ts';

const check = checksOf(['controls']);

/** Checks of controls of a policy. Every process that has the policy obeys them. */
export const policyControlChecks: readonly Check[] = [
  check('keeps controls of policies, with who set them and since when', [], async (stage) => {
    const policy = stage.name('policy');
    const wanted: [PolicyControl, string][] = [
      [{ kind: 'breaker', policy, target: 'eu/1', state: 'open' }, `breaker:${policy}:eu%2F1`],
      [{ kind: 'breaker', policy, state: 'closed' }, `breaker:${policy}`],
      [{ kind: 'retries', policy, state: 'off' }, `retries:${policy}`],
      [{ kind: 'mode', policy, mode: 'observe' }, `mode:${policy}`],
    ];
    for (const [control, id] of wanted) {
      const imposed = await stage.controls.impose(control, act);
      expectLike(imposed, { id, control, act, until: undefined }, 'the control');
      expectLike(controlId(control), id, 'its id');
    }
    const { now, version, controls } = await stage.controls.active();
    const mine = controls.filter((active) => isOf(active, policy));
    expectLike(new Set(mine.map(({ id }) => id)), new Set(wanted.map(([, id]) => id)), 'all of them');
    for (const active of mine) {
      ensure(active.since <= now, 'set before now');
      ensure(active.version <= version, 'in force since a version');
      expectLike(await stage.controls.lift(active.id, act), true, 'it can be lifted');
      expectLike(await stage.controls.lift(active.id, act), false, 'once');
    }
    expectLike(await activeOf(stage, policy), [], 'none is left');
  }),

  check('changes the version with every control of a policy', [], async (stage) => {
    const control = { kind: 'breaker', policy: stage.name('policy'), state: 'open' } as const;
    const versions: number[] = [];
    const see = async () => void versions.push((await stage.controls.active()).version);
    await see();
    const first = await stage.controls.impose(control, act);
    await see();
    expectLike(first.version, versions[1], 'a control tells since which version it applies');
    const second = await stage.controls.impose({ ...control, state: 'closed' }, act, 4 * stage.unitMs);
    await see();
    ensure(second.version > first.version, 'replacing it is news');
    await stage.pass(5);
    await see();
    await stage.controls.lift((await stage.controls.impose(control, act)).id, act);
    await see();
    expectLike(
      versions,
      [...new Set(versions)].toSorted((a, b) => a - b),
      'set, replaced, ended, lifted',
    );
  }),

  check('replaces a control of a policy that has the same id', [], async (stage) => {
    const policy = stage.name('policy');
    const breaker = { kind: 'breaker', policy, target: 'a', state: 'open' } as const;
    await stage.controls.impose(breaker, act);
    await stage.controls.impose({ kind: 'breaker', policy, state: 'open' }, act);
    await stage.controls.impose({ ...breaker, state: 'closed' }, { ...act, who: 'bob' });
    const active = await activeOf(stage, policy);
    expectLike(active.length, 2, 'a control of one target, and one of all');
    const replaced = active.find(({ id }) => id === controlId(breaker));
    expectLike(replaced, { control: { state: 'closed' }, act: { who: 'bob' } }, 'the new value');
  }),

  check('ends a control of a policy by itself', [], async (stage) => {
    const policy = stage.name('policy');
    const control = { kind: 'retries', policy, state: 'off' } as const;
    const { since, until } = await stage.controls.impose(control, act, 2 * stage.unitMs);
    expectLike(until, since + 2 * stage.unitMs, 'it says when');
    await stage.pass(3);
    expectLike(await activeOf(stage, policy), [], 'it has ended');
    expectLike(await stage.controls.lift(controlId(control), act), false, 'and cannot be lifted');
  }),

  check('refuses a control that nobody could obey', [], async (stage) => {
    const policy = stage.name('policy');
    const wrong: object[] = [
      { kind: 'breaker', policy, state: 'ajar' },
      { kind: 'breaker', policy },
      { kind: 'breaker', state: 'open' },
      { kind: 'breaker', policy, target: 5, state: 'open' },
      { kind: 'retries', policy, state: 'on' },
      { kind: 'mode', policy, mode: 'sometimes' },
      { kind: 'mode', policy: `${policy}\0`, mode: 'observe' },
      { kind: 'mode', policy, mode: 'observe', topic: 'orders' },
      { kind: 'dance', policy },
    ];
    for (const control of wrong) {
      const imposed = (async () => stage.controls.impose(control as Control, act))();
      await expectRejection(imposed, 'HOLDFAST_OPTIONS', JSON.stringify(control));
    }
    const unknown = { kind: 'retries', policy, state: 'off' } as const;
    const nameless = (async () => stage.controls.impose(unknown, { who: '', why: '' }))();
    await expectRejection(nameless, 'HOLDFAST_TRIAGE_NO_REASON', 'nobody');
    expectLike(await activeOf(stage, policy), [], 'nothing was imposed');
  }),

  check('keeps controls of policies for every process', ['sharedControls', 'reopen'], async (stage) => {
    const control = { kind: 'mode', policy: stage.name('policy'), mode: 'enforce' } as const;
    const imposed = await stage.controls.impose(control, act);
    await stage.reopen();
    expectLike(await activeOf(stage, control.policy), [imposed], 'another process sees it');
    expectLike(await stage.controls.lift(imposed.id, act), true, 'and can lift it');
  }),
];

const flow = checksOf(['broker']);

/** Checks that a pause of the retries does not stop first attempts. */
export const retryPauseChecks: readonly Check[] = [
  flow('leases first attempts only while the retries of a topic are paused', [], async (stage) => {
    const [topic, other] = [await stage.topic(), await stage.topic()];
    for (const each of [topic, other]) {
      await stage.publish(each, ['retry']);
      await stage.settle(stage.retry(await stage.takeOne(each), 0));
    }
    const pause = { kind: 'pause', topic, only: 'retries' } as const;
    const { id } = await stage.broker.controls.impose(pause, act);
    ensure(id.endsWith(':retries'), 'it has an id of its own');
    await stage.publish(topic, ['fresh']);
    expectLike(payloads(await stage.take(topic, 1, { limit: 10 })), ['fresh'], 'the first attempt');
    const { deliveries, nextDueInMs } = await stage.broker.lease(topic, {
      ...{ owner: 'w', limit: 10, leaseMs: 50 * stage.unitMs, retriesShare: 0.5 },
    });
    expectLike(payloads(deliveries), [], 'the retry waits');
    expectLike(nextDueInMs, undefined, 'and nobody is told to come back for it');
    expectLike(payloads(await stage.take(other, 1)), ['retry'], 'other topics flow');
    await stage.broker.controls.lift(id, act);
    expectLike(payloads(await stage.take(topic, 1)), ['retry'], 'resumed');
  }),

  flow('keeps suspects waiting while the retries of a topic are paused', ['suspects'], async (stage) => {
    const topic = await stage.topic();
    await stage.publish(topic, ['a']);
    await stage.takeOne(topic, { leaseMs: 2 * stage.unitMs });
    await stage.pass(3);
    const { id } = await stage.broker.controls.impose({ kind: 'pause', topic, only: 'retries' }, act);
    const request = { owner: 'w', limit: 10, leaseMs: 50 * stage.unitMs };
    expectLike(await stage.broker.lease(topic, request), { deliveries: [], suspects: 0 }, 'a lease');
    await stage.expectNothing(topic, 'a lease of suspects');
    await stage.broker.controls.lift(id, act);
    const lifted = await stage.takeOne(topic, { suspects: true });
    expectLike(lifted, { payload: 'a', suspect: true }, 'it is still a suspect');
  }),

  flow('does not let a key overtake its retry while retries are paused', ['ordering'], async (stage) => {
    const topic = await stage.topic({ ordering: 'key' });
    await stage.publish(topic, ['a1', 'a2'], { key: 'a' });
    await stage.publish(topic, ['b1'], { key: 'b' });
    const first = await stage.take(topic, 2);
    await stage.settle(...first.map((delivery) => stage.retry(delivery, 0)));
    await stage.publish(topic, ['c1'], { key: 'c' });
    // Wait until c1 has arrived: a broker that fetches in advance gets it a little later.
    await stage.pass(0.1);
    const { id } = await stage.broker.controls.impose({ kind: 'pause', topic, only: 'retries' }, act);
    expectLike(payloads(await stage.lease(topic, { runMax: 3 })), ['c1'], 'only a key without a retry');
    await stage.broker.controls.lift(id, act);
    const run = (await stage.take(topic, 1)).map(({ key }) => key);
    ensure(run[0] === 'a' || run[0] === 'b', 'the retries flow again');
  }),

  flow('keeps a pause of retries beside a pause of everything', [], async (stage) => {
    const topic = await stage.topic();
    await stage.publish(topic, ['retry']);
    await stage.settle(stage.retry(await stage.takeOne(topic), 0));
    await stage.publish(topic, ['fresh']);
    const retries = await stage.broker.controls.impose({ kind: 'pause', topic, only: 'retries' }, act);
    const all = await stage.broker.controls.impose({ kind: 'pause', topic }, act);
    await stage.expectNothing(topic, 'all is paused');
    await stage.broker.controls.lift(all.id, act);
    expectLike(payloads(await stage.take(topic, 1)), ['fresh'], 'the retries are still paused');
    await stage.broker.controls.lift(retries.id, act);
    expectLike(payloads(await stage.take(topic, 1)), ['retry'], 'nothing is paused');
  }),
];

function isOf({ control }: ActiveControl, policy: string): boolean {
  return 'policy' in control && control.policy === policy;
}

async function activeOf(stage: Stage, policy: string): Promise<ActiveControl[]> {
  return (await stage.controls.active()).controls.filter((active) => isOf(active, policy));
}

import { ensure, expectLike } from './assertions.ts';
import { journalCheck as check } from './journal-checks.ts';
import type { Check } from './stage.ts';

export const journalQueueChecks: readonly Check[] = [
  check(
    'leases at most as many of a queue as run at the same time, in all workers',
    [],
    async (stage, general) => {
      const queue = general.name('queue');
      await stage.journal.setQueue(queue, { concurrency: 2 });
      await stage.start({ queue }, { queue }, { queue }, {});
      const first = await stage.claim({ worker: 'one' });
      ensure(first.length === 3, `two of the queue and the other are leased, got ${first.length}`);
      await stage.expectNothing('the queue is full for other workers', { worker: 'two' });
      expectLike(
        (await stage.journal.queues()).filter(({ name }) => name === queue),
        [{ limits: { concurrency: 2 }, leased: 2, waiting: 1 }],
        'the queue says what it holds',
      );
      const inQueue = first.find((each) => each.queue === queue)!;
      await stage.progress(inQueue.lease, { next: { kind: 'done', result: undefined } });
      ensure((await stage.claim({ worker: 'two' })).length === 1, 'an end lets the next one in');
      await stage.journal.setQueue(queue, {});
    },
  ),

  check('limits a queue by key', [], async (stage, general) => {
    const queue = general.name('queue');
    await stage.journal.setQueue(queue, { concurrencyByKey: 1 });
    const [a1, a2, a3, b1] = await stage.start(
      { queue, key: 'a' },
      { queue, key: 'a' },
      { queue, key: 'a' },
      { queue, key: 'b' },
    );
    const first = await stage.claim();
    await stage.expectIds(first, [a1!, b1!], 'one of each key is leased');
    await stage.expectNothing('the others wait');
    await stage.progress(first[0]!.lease, {
      next: { kind: 'suspend', dueInMs: 90 * stage.unitMs, revision: 0 },
    });
    const second = await stage.claim();
    await stage.expectIds(second, [a2!], 'one that sleeps lets the next of its key in');
    await stage.pass(60);
    const others = await stage.claim({ worker: 'other' });
    expectLike(
      new Set(others.map(({ key }) => key)),
      new Set(['a', 'b']),
      'a dead worker gives its keys back',
    );
    const waiting = [a2, a3].find((id) => others.every((each) => each.id !== id));
    ensure(waiting !== undefined && others.length === 2, 'still one of each key is leased');
    await stage.journal.requestStop([{ id: waiting, stop: { because: 'cancelled', message: '' } }]);
    await stage.expectNothing('a request to stop does not pass the limit', { worker: 'other' });
  }),

  check('leases a queue no faster than its rate', [], async (stage, general) => {
    const queue = general.name('queue');
    await stage.journal.setQueue(queue, { rate: { count: 2, perMs: 4 * stage.unitMs } });
    await stage.start({ queue }, { queue }, { queue });
    const first = await stage.claimAll();
    ensure(first.assemblies.length === 2, `two may pass at once, got ${first.assemblies.length}`);
    const { nextDueInMs = Infinity } = await stage.claimAll();
    ensure(
      nextDueInMs > 0 && nextDueInMs <= 2 * stage.unitMs,
      `the next may pass within two units, got ${nextDueInMs}`,
    );
    const { lease } = first.assemblies[0]!;
    await stage.progress(lease, { next: { kind: 'return' } });
    await stage.expectIds(await stage.claim(), [lease.id], 'one that goes on is not counted again');
    await stage.pass(2.5);
    ensure((await stage.claim()).length === 1, 'the next passes after its time');
  }),

  check('leases a key no faster than its rate', [], async (stage, general) => {
    const queue = general.name('queue');
    await stage.journal.setQueue(queue, { rateByKey: { count: 1, perMs: 4 * stage.unitMs } });
    const [a1, a2, b1] = await stage.start({ queue, key: 'a' }, { queue, key: 'a' }, { queue, key: 'b' });
    await stage.expectIds(await stage.claim(), [a1!, b1!], 'one of each key may pass');
    await stage.expectNothing('the second of a key waits');
    await stage.pass(5);
    await stage.expectIds(await stage.claim({ worker: 'one' }), [a2!], 'it passes after its time');
  }),
];

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { assemblies, assembly, MismatchError } from '@holdfast/assembly';
import { openSqlite } from '@holdfast/sqlite';
import { permanent, transient } from 'holdfast';
import { virtualClock } from 'holdfast/testing';
import { describe, expect, test } from 'vitest';
import { settle, stage } from './stage.ts';

/** What breaks in other systems that run work of many steps. Each is tried here. */
describe('elsewhere', () => {
  test('steps are known by position: a list that grew gives one item the receipt of another', async () => {
    const { open, pass } = stage();
    const sent: string[] = [];
    let blocked = 'b';
    const program = (list: readonly string[]) =>
      assembly('letters', async (step) => {
        const receipts = await step.each('send', list, String, async (branch, item) => {
          return branch.run('post', async () => {
            if (item === blocked) await new Promise(() => {});
            sent.push(item);
            return `receipt of ${item}`;
          });
        });
        return receipts;
      });
    const first = open([program(['a', 'b'])]);
    await first.run();
    await first.start(program(['a', 'b']), undefined, { id: 'x' });
    await settle();
    first.kill();
    blocked = '';
    const second = open([program(['c', 'a', 'b'])]);
    await second.run();
    await pass(60_000);
    expect(await second.get('x').result()).toEqual(['receipt of c', 'receipt of a', 'receipt of b']);
    expect(sent.sort()).toEqual(['a', 'b', 'c']);
  });

  test('a race has another winner after a crash', async () => {
    const { open, clock, pass } = stage();
    const winners: unknown[] = [];
    let isSlow = false;
    const program = assembly('race', async (step) => {
      const winner = await step.race('who', {
        fast: (branch) => branch.run('a', () => (isSlow ? new Promise(() => {}) : 'fast')),
        slow: (branch) => branch.sleep('b', '10s').then(() => 'slow'),
      });
      winners.push(winner);
      await step.sleep('night', '8h');
      return winner;
    });
    const first = open([program]);
    await first.run();
    await first.start(program, undefined, { id: 'x' });
    await settle();
    first.kill();
    isSlow = true;
    const second = open([program]);
    await second.run();
    await clock.advance('1s');
    await pass(9 * 3_600_000, 30);
    expect(await second.get('x').result()).toBe('fast');
    expect(new Set(winners)).toEqual(new Set(['fast']));
  });

  test('one name in parallel chains is numbered by timing', async () => {
    const { open, settle: quiet } = stage();
    const program = assembly('twice', async (step) => {
      await Promise.all([step.run('call', () => 1), step.run('call', () => 2)]);
    });
    const work = open([program]);
    await work.run();
    await work.start(program, undefined, { id: 'x' });
    await quiet();
    const { assembly: stored } = await work.inspect('x');
    expect(stored).toMatchObject({ state: 'parked', parked: { error: { code: 'HOLDFAST_STEP_AMBIGUOUS' } } });
  });

  test('suspension is an exception, which a catch swallows', async () => {
    const { open, clock, pass } = stage();
    const wokenAt: number[] = [];
    const program = assembly('sleeper', async (step) => {
      try {
        await step.sleep('hour', '1h');
      } catch {
        return 'swallowed';
      } finally {
        wokenAt.push(clock.now());
      }
      return 'slept';
    });
    const work = open([program]);
    await work.run();
    const it = await work.start(program, undefined);
    await pass(3_500_000);
    expect(wokenAt).toEqual([]);
    await pass(200_000);
    expect(await it.result()).toBe('slept');
    expect(wokenAt).toHaveLength(1);
  });

  test('attempts are counted in memory, and a kill begins anew', async () => {
    const { open, pass } = stage();
    const attempts: number[] = [];
    const program = assembly('flaky', async (step) =>
      step.run(
        'call',
        ({ attempt }) => {
          attempts.push(attempt);
          throw transient(new Error('down'));
        },
        { policy: { attempts: 4, backoff: { strategy: 'constant', base: '1s', cap: '1s', jitter: 'none' } } },
      ),
    );
    const first = open([program]);
    await first.run();
    await first.start(program, undefined, { id: 'x' });
    await pass(1500, 15);
    expect(attempts).toEqual([1, 2]);
    first.kill();
    // The dead process can not call any more; what it would have done is not counted.
    const before = attempts.length;
    const second = open([program]);
    await second.run();
    await pass(60_000, 120);
    const { steps, assembly: stored } = await second.inspect('x');
    expect(stored.parked).toMatchObject({ because: 'attempts_exhausted' });
    expect(steps[0]).toMatchObject({ attempts: 4, state: 'failed' });
    expect(steps[0]!.story!.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4]);
    expect(before).toBe(2);
  });

  test('nobody takes over from a dead worker', async () => {
    const { open, pass } = stage();
    let isBlocked = true;
    const program = assembly('order', async (step) =>
      step.run('call', () => (isBlocked ? new Promise<string>(() => {}) : 'done')),
    );
    const first = open([program]);
    const second = open([program]);
    await first.run();
    await first.start(program, undefined, { id: 'x' });
    await settle();
    await second.run();
    first.kill();
    isBlocked = false;
    await pass(32_000, 64);
    expect(await second.get('x').result()).toBe('done');
  });

  test('a slow worker and its successor both go on', async () => {
    const { open, storage, pass } = stage();
    const begun: string[] = [];
    const release: (() => void)[] = [];
    const program = (who: string) =>
      assembly('order', async (step) => {
        await step.run('one', async () => {
          begun.push(`${who} one`);
          if (who === 'slow') await new Promise<void>((resolve) => release.push(resolve));
        });
        await step.run('two', () => void begun.push(`${who} two`));
      });
    const slow = open([program('slow')]);
    await slow.run();
    await slow.start(program('slow'), undefined, { id: 'x' });
    await settle();
    // Its lease ends while it can not reach the store, and another worker takes over.
    storage.journal.workers.set(slow.worker, 0);
    const quick = open([program('quick')]);
    await quick.run();
    await pass(1000);
    await quick.get('x').result();
    release[0]!();
    await pass(1000);
    expect(begun).toEqual(['slow one', 'quick one', 'quick two']);
  });

  test('a step longer than the lease counts as dead', async () => {
    const { open, pass } = stage();
    const calls: string[] = [];
    const finish: (() => void)[] = [];
    const program = assembly('long', async (step) =>
      step.run('call', async () => {
        calls.push('call');
        await new Promise<void>((resolve) => finish.push(resolve));
        return 'at last';
      }),
    );
    const first = open([program]);
    const second = open([program]);
    await first.run();
    const it = await first.start(program, undefined);
    await second.run();
    await pass(300_000, 60);
    finish[0]!();
    await pass(1000);
    expect(await it.result()).toBe('at last');
    expect(calls).toEqual(['call']);
  });

  test('sleepers stay in memory, with a timer each', async () => {
    const { open, clock } = stage();
    const program = assembly('sleeper', async (step) => step.sleep('long', '30d'));
    const work = open([program], { concurrency: 1000 });
    await work.run();
    for (let number = 0; number < 500; number++) await work.start(program, undefined);
    await settle(10);
    expect(work.state.leased).toBe(0);
    expect(clock.pendingTimers).toBeLessThan(5);
  });

  test('the clock of a worker decides when a sleep is over', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-assembly-'));
    const clock = virtualClock();
    const ahead = { ...clock, now: () => clock.now() + 600_000, epochMs: () => clock.epochMs() + 600_000 };
    ahead.set = (alarm, at) => clock.set(alarm, at - 600_000);
    const engine = await openSqlite({ file: path.join(folder, 'x.db'), clock });
    const program = assembly('sleeper', async (step) => step.sleep('two minutes', '2m'));
    const right = assemblies({ engine, programs: [program], clock });
    await right.run();
    const it = await right.start(program, undefined);
    for (let turn = 0; turn < 10; turn++) await settle();
    await right.stop();
    const wrong = assemblies({ engine, programs: [program], clock: ahead });
    await wrong.run();
    for (let turn = 0; turn < 10; turn++) {
      await clock.advance('5s');
      await settle(5);
    }
    expect((await it.status()).state).toBe('waiting');
    for (let turn = 0; turn < 30; turn++) {
      await clock.advance('5s');
      await settle(5);
    }
    expect((await it.status()).state).toBe('done');
    const stopped = wrong.stop();
    await settle(5);
    await stopped;
    await engine.close();
    rmSync(folder, { recursive: true });
  });

  test('the same id with another input is answered with the first result', async () => {
    const { open } = stage();
    const program = assembly('order', async (_step, item: number) => item);
    const work = open([program]);
    await work.run();
    expect(await (await work.start(program, 1, { id: 'x' })).result()).toBe(1);
    const again = await work.start(program, 1, { id: 'x' });
    expect([again.repeated, await again.result()]).toEqual([true, 1]);
    await expect(work.start(program, 2, { id: 'x' })).rejects.toThrow(MismatchError);
  });

  test('nobody is told when retries are exhausted', async () => {
    const { open, pass } = stage();
    const told: string[] = [];
    const program = assembly('order', { plan: ['charge', 'ship'] }, async (step) => {
      await step.run('charge', () => 1);
      await step.run('ship', () => Promise.reject(permanent(new Error('no street'))));
    });
    const work = open([program]);
    await work.run();
    const it = await work.start(program, undefined, {
      notify: ({ type, text }) => told.push(`${type}: ${text}`),
    });
    await pass(1000);
    expect(told[0]).toBe('accepted: accepted');
    expect(told.at(-1)).toBe('problem: waits for a person');
    await it.cancel('never mind');
    await pass(1000);
    expect(told.at(-1)).toBe('stopped: stopped because never mind');
  });

  test('a failed workflow can not go on from the step that failed', async () => {
    const { open, pass } = stage();
    const calls: string[] = [];
    let isBroken = true;
    const program = assembly('order', async (step) => {
      await step.run('charge', () => void calls.push('charge'));
      await step.run('ship', () => {
        calls.push('ship');
        if (isBroken) throw permanent(new Error('no street'));
      });
      return 'ok';
    });
    const work = open([program]);
    await work.run();
    const it = await work.start(program, undefined, { id: 'x' });
    await pass(100);
    isBroken = false;
    await work.resume('x', { who: 'ada', why: 'the street is there' });
    await pass(100);
    expect(await it.result()).toBe('ok');
    expect(calls).toEqual(['charge', 'ship', 'ship']);
  });
});
// A renamed step that runs again: changed-program.test.ts. A sleeper that does not hear of its cancellation, and
// compensation that is not run on cancel: stopping.test.ts.

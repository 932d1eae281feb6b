import { forgottenAfterMs, type ProcessReport, processesMax, reportBytesMax } from '../presence.ts';
import { ensure, expectLike, expectRejection } from './assertions.ts';
import { type Check, checksOf, type Stage } from './stage.ts';

const check = checksOf(['presence']);

export const presenceChecks: readonly Check[] = [
  check('lists a process with its latest report', [], async (stage) => {
    const first = reportOf(stage);
    const policies = [{ name: 'payment', targets: [{ target: 'eu', state: 'open' }] }];
    const second = { ...first, controlsVersion: 5, notObeyed: ['mode:x'], policies, leftOut: 2 };
    await stage.presence.report(first);
    const before = await present(stage, [first.id]);
    expectLike(before, [first], 'the first report');
    await stage.pass(1);
    await stage.presence.report(second);
    const after = await present(stage, [first.id]);
    expectLike(after, [second], 'the second in its place');
    ensure(after[0]!.heardAt > before[0]!.heardAt, 'it says when it was heard of');
  }),

  check('lists processes by host, pid and id', [], async (stage) => {
    const host = stage.name('host');
    const [a, b, c, d] = [
      reportOf(stage, { host, pid: 9 }),
      reportOf(stage, { host, pid: 10 }),
      reportOf(stage, { host: `${host}-b`, pid: 1 }),
      reportOf(stage, { host, pid: 10 }),
    ];
    for (const report of [c, d, b, a]) await stage.presence.report(report);
    const listed = await present(stage, [a.id, b.id, c.id, d.id]);
    const ids = listed.map(({ id }) => id);
    expectLike(ids, [a.id, ...[b.id, d.id].toSorted(), c.id], 'in this order');
  }),

  check('forgets a process 10 s after its last report', [], async (stage) => {
    const [silent, alive] = [reportOf(stage), reportOf(stage)];
    const both = [silent.id, alive.id];
    await stage.presence.report(silent);
    await stage.presence.report(alive);
    await stage.harness.passTime(forgottenAfterMs - 4000);
    await stage.presence.report(alive);
    await stage.harness.passTime(5000);
    expectLike(await present(stage, both), [alive], 'one is silent');
    await stage.engine.sweep(1000);
    await stage.presence.report(silent);
    const ids = (await present(stage, both)).map(({ id }) => id);
    expectLike(new Set(ids), new Set(both), 'it may come back');
  }),

  check('removes a process that leaves', [], async (stage) => {
    const [gone, alive] = [reportOf(stage), reportOf(stage)];
    await stage.presence.report(gone);
    await stage.presence.report(alive);
    await stage.presence.leave(gone.id);
    await stage.presence.leave('unknown');
    expectLike(await present(stage, [gone.id, alive.id]), [alive], 'the other stays');
  }),

  check(
    'refuses a report that is too large or not well formed, and keeps the last one',
    [],
    async (stage) => {
      const report = reportOf(stage);
      await stage.presence.report(report);
      // Each ü has two bytes: the limit is in bytes, not in characters.
      const large = 'ü'.repeat(reportBytesMax / 2);
      const refused = (async () => stage.presence.report({ ...report, policies: [large] }))();
      await expectRejection(refused, 'HOLDFAST_TOO_LARGE', 'more than 8 KiB');
      const wrong: object[] = [
        { id: '' },
        { id: 'a\0b' },
        { service: undefined },
        { pid: Number.NaN },
        { policies: {} },
        { notObeyed: 'all' },
      ];
      for (const fields of wrong) {
        const asked = (async () => stage.presence.report({ ...report, ...fields } as ProcessReport))();
        await expectRejection(asked, 'HOLDFAST_OPTIONS', JSON.stringify(fields));
      }
      expectLike(await present(stage, [report.id]), [report], 'the last one');
      const fits = { ...report, policies: ['x'.repeat(reportBytesMax - 1000)] };
      await stage.presence.report(fits);
      expectLike(await present(stage, [report.id]), [fits], 'nearly 8 KiB');
    },
  ),

  check('keeps at most 1000 processes, without the oldest', [], async (stage) => {
    const [first, ...others] = Array.from({ length: processesMax + 1 }, () => reportOf(stage));
    await stage.presence.report(first!);
    await stage.pass(0.1);
    for (let from = 0; from < others.length; from += 50) {
      await Promise.all(others.slice(from, from + 50).map((report) => stage.presence.report(report)));
    }
    const processes = await stage.presence.processes();
    ensure(processes.length <= processesMax, 'no more than 1000');
    const ids = new Set(processes.map(({ id }) => id));
    ensure(!ids.has(first!.id), 'the oldest was replaced');
    ensure(ids.has(others.at(-1)!.id), 'the latest is there');
  }),

  check('shows processes to every process', ['reopen'], async (stage) => {
    const report = reportOf(stage);
    await stage.presence.report(report);
    await stage.reopen();
    expectLike(await present(stage, [report.id]), [report], 'another process sees it');
  }),
];

function reportOf(stage: Stage, rest: Partial<ProcessReport> = {}): ProcessReport {
  return {
    ...{ id: stage.name('process'), service: 'checkout', host: stage.name('host'), pid: 4711 },
    ...{ version: '1.2.3', startedAt: 1_700_000_000_000, clockOffsetMs: 1_700_000_000_000.5 },
    ...{ controlsVersion: 0, notObeyed: [], policies: [], consumers: [{ name: 'shipping' }], leftOut: 0 },
    ...rest,
  };
}

/** Lists only the processes with these ids, because other processes may use the same store. */
async function present(stage: Stage, ids: readonly string[]) {
  return (await stage.presence.processes()).filter(({ id }) => ids.includes(id));
}

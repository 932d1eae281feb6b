import { Attempt } from '../attempt.ts';
import { either, number, shape, word } from '../fields.ts';
import { addLayer } from '../layer.ts';
import type { Outcome } from '../outcome.ts';
import { definePart } from '../part.ts';
import type { Operation, Plan, RunOptions } from '../plan.ts';
import type { Ending } from '../shell.ts';
import { DONE, SEND, type Step, type Work } from '../work.ts';

/**
 * How much a policy may do. `enforce` does it. `observe` changes nothing for anybody: every operation is called once,
 * while breakers, budgets and the rest learn from it and what they would have done is counted. `{ enforce: 0.1 }`
 * does it for a tenth of the work and observes the others.
 */
export const mode = definePart({
  key: 'mode',
  fields: {
    mode: either('enforce', word('enforce', 'enforce', 'observe'), shape({ enforce: number(1, 0, 1) })),
  },
  create({ mode: said }, plan) {
    const share = typeof said === 'object' ? said.enforce : said === 'observe' ? 0 : 1;
    if (share === 1) return;
    addLayer(plan, {
      order: 3,
      around: (operation, options, next) =>
        plan.random() < share ? next(options) : observe(plan, operation, options),
    });
  },
});

async function observe<T>(plan: Plan, operation: Operation<T>, options: RunOptions): Promise<Ending<T>> {
  const startedAt = plan.clock.now();
  const work = plan.work(options, startedAt, startedAt + plan.patienceMs);
  const step = work.begin(startedAt);
  const attempt = work.current ?? new Attempt(plan, 1, Infinity);
  let outcome: Outcome;
  try {
    outcome = { ok: true, value: await operation(attempt) };
  } catch (error) {
    outcome = { ok: false, error };
  }
  imagine(work, step, outcome);
  const { would } = plan.counters;
  const retries = work.log.filter(({ verdict }) => verdict.kind === 'retry').length;
  if (retries) would.retry = (would.retry ?? 0) + retries;
  if (work.stop) would[work.stop] = (would[work.stop] ?? 0) + 1;
  const { story } = work;
  return outcome.ok
    ? { ok: true, value: outcome.value as T, story }
    : { ok: false, thrown: true, error: outcome.error, value: undefined, story };
}

/** More retries than this are not imagined for one piece of work. */
const imaginedMax = 100;

/**
 * Takes the shadow of some work to its end. What a retry would have given cannot be known: it is taken to fail as
 * the real call did, at once; an outage is told exactly so, and a flicker too darkly.
 */
function imagine(work: Work, first: Step, outcome: Outcome): void {
  const now = work.plan.clock.now();
  let waitedMs = 0;
  let step = first;
  for (let retries = 0; retries < imaginedMax; retries++) {
    if (step === SEND) step = settle(work, now, outcome);
    if (step >= DONE) return;
    if (!work.backingOff) break;
    waitedMs += work.wakeAt - now;
    if (now + waitedMs > work.patienceEndsAt) break;
    step = work.alarm(now);
  }
  work.cancel(now, undefined);
}

function settle(work: Work, now: number, outcome: Outcome): Step {
  const attempt = work.current as Attempt;
  if (now >= work.wakeAt) return work.alarm(now);
  return outcome.ok ? work.succeeded(now, attempt, outcome.value) : work.settled(now, attempt, outcome);
}

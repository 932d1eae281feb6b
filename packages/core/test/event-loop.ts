import { http } from '../src/classify/http.ts';
import { policy } from '../src/policy/all-parts.ts';
import { durationMs } from '../src/policy/duration.ts';
import type { Attempt } from '../src/run/attempt.ts';
import { DONE, type Driver, SEND, STOP, type Step } from '../src/run/step.ts';
import type { Work } from '../src/run/work.ts';
import { seededRandom } from '../src/testing.ts';
import { AlarmHeap } from '../src/time/alarm-heap.ts';
import { Alarm, type Clock } from '../src/time/clock.ts';
import { beatOf, earn, outcomeOf, type Script, type Trace } from './trace.ts';

/** A clock with no promises in it: an alarm rings when the loop comes to it. */
class EventLoop implements Clock {
  readonly #alarms = new AlarmHeap();
  readonly #soon: (() => void)[] = [];
  #now = 0;

  now = () => this.#now;
  epochMs = () => this.#now;
  set(alarm: Alarm, at: number): void {
    this.#alarms.set(alarm, Math.max(at, this.#now));
  }
  clear(alarm: Alarm): void {
    this.#alarms.clear(alarm);
  }

  run(): void {
    for (let { first } = this.#alarms; first; { first } = this.#alarms) {
      this.#now = first.at;
      this.#alarms.clear(first);
      first.ring(this.#now);
      for (const each of this.#soon) each();
      this.#soon.length = 0;
    }
  }

  /** After what is going on, at the same time. */
  soon(event: () => void): void {
    this.#soon.push(event);
  }

  at(time: number, event: (now: number) => void): Alarm {
    const alarm = new (class extends Alarm {
      ring = event;
    })();
    this.set(alarm, time);
    return alarm;
  }
}

/** One line for each call and each end, in words that do not depend on who drove the machines. */
export interface Line {
  readonly at: number;
  readonly run: number;
  readonly what: string;
}

/** Drives the machines of a trace directly, the way a simulator does. */
export function drive({ seed, spec, scripts }: Trace): Line[] {
  const loop = new EventLoop();
  const { plan } = policy({ retryOn: [http], ...spec }, { clock: loop, random: seededRandom('trace', seed) });
  earn(plan);
  const lines: Line[] = [];
  scripts.forEach((script, run) => {
    loop.at(script.startsAt, (now) => {
      const { patience } = script.options;
      const patienceMs = patience === undefined ? plan.patienceMs : durationMs(patience);
      new Performer(loop, script, plan.work(script.options, now, now + patienceMs), (what) =>
        lines.push({ at: loop.now(), run, what }),
      ).begin(now);
    });
  });
  loop.run();
  return lines;
}

class Performer extends Alarm implements Driver {
  readonly loop: EventLoop;
  readonly script: Script;
  readonly work: Work;
  readonly tell: (what: string) => void;
  calls = 0;
  leaving: Alarm | undefined;
  readonly inFlight = new Map<Attempt, Alarm>();
  /** Those whose signal has aborted, in that order: at the same time, it counts who gives back a permit first. */
  readonly leavers: Attempt[] = [];

  constructor(loop: EventLoop, script: Script, work: Work, tell: (what: string) => void) {
    super();
    this.loop = loop;
    this.script = script;
    this.work = work;
    this.tell = tell;
    work.driver = this;
  }

  begin(now: number): void {
    const { leavesAfterMs } = this.script;
    if (leavesAfterMs !== undefined) {
      this.leaving = this.loop.at(now + leavesAfterMs, (later) =>
        this.perform(this.work.cancel(later, 'left')),
      );
    }
    this.go(this.work.begin(now));
  }

  /** From a timer or a queue: the shell, too, calls after what is going on, and who is first counts at the same time. */
  perform(step: Step): void {
    const { work, loop } = this;
    const { current } = work;
    if (step !== SEND) this.go(step);
    else loop.soon(() => work.isLate(loop.now(), current as Attempt) || this.go(SEND));
  }

  go(step: Step): void {
    const { work, loop } = this;
    if (step === SEND) this.call(work.current as Attempt);
    if (step < DONE) {
      if (work.wakeAt < Infinity) loop.set(this, work.wakeAt);
    } else {
      loop.clear(this);
      if (this.leaving) loop.clear(this.leaving);
      this.tell(step === STOP ? `stops: ${work.stop}` : 'is done');
    }
    this.heed();
  }

  ring(now: number): void {
    this.perform(this.work.alarm(now));
  }

  call(attempt: Attempt): void {
    const { tookMs, heeds } = beatOf(this.script, this.calls);
    if (heeds) attempt.signal.addEventListener('abort', () => this.leavers.push(attempt));
    const call = this.calls++;
    this.tell(`attempt ${attempt.attempt} at ${attempt.target}`);
    const answer = (now: number) => this.settle(now, attempt, call);
    if (tookMs < Infinity) this.inFlight.set(attempt, this.loop.at(this.loop.now() + tookMs, answer));
    else this.inFlight.set(attempt, this.loop.at(Infinity, answer));
  }

  settle(now: number, attempt: Attempt, call: number): void {
    const { work, loop } = this;
    this.inFlight.delete(attempt);
    if (work.isLate(now, attempt)) return;
    loop.clear(this);
    const { ok, value } = outcomeOf(beatOf(this.script, call).gives);
    this.go(
      ok ? work.succeeded(now, attempt, value) : work.settled(now, attempt, { ok: false, error: value }),
    );
  }

  /** Calls that heed their signal end when it has aborted. */
  heed(): void {
    for (const attempt of this.leavers.splice(0)) {
      const answer = this.inFlight.get(attempt);
      if (!answer) continue;
      this.loop.clear(answer);
      this.inFlight.delete(attempt);
      this.work.isLate(this.loop.now(), attempt);
    }
  }
}

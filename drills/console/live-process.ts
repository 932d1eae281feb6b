// A console on a store in memory whose time passes 60 times as fast, and 20 services that report 5,000 calls a second.

import { openConsole } from '@holdfast/console';
import { memoryEngine } from '@holdfast/contracts/memory';
import { type Alarm, type Clock, type PolicyState, systemClock, Timer } from 'holdfast';
import { parkedEvent } from '../parked/parked-event.ts';

export type LiveMessage = { readonly link: string } | { readonly cpuMs: number; readonly storeMs: number };

const speed = 60;
const services = 20;
const callsPerSecond = 5000;
const parkedPerReport = 5;
const reportMs = 2000;

/** The system's clock, faster. */
class FastClock implements Clock {
  readonly #alarms = new Map<Alarm, Timer>();

  now(): number {
    return systemClock.now() * speed;
  }

  epochMs(): number {
    return systemClock.epochMs() + systemClock.now() * (speed - 1);
  }

  set(alarm: Alarm, at: number): void {
    this.clear(alarm);
    alarm.at = at;
    alarm.index = 0;
    const timer = new Timer(systemClock, () => {
      this.clear(alarm);
      alarm.ring(this.now());
    });
    this.#alarms.set(alarm, timer);
    timer.setAt(at / speed);
  }

  clear(alarm: Alarm): void {
    alarm.index = -1;
    this.#alarms.get(alarm)?.clear();
    this.#alarms.delete(alarm);
  }
}

const clock = new FastClock();
const engine = memoryEngine({ clock });
await engine.broker.declare('orders');
let reports = 0;
let parked = 0;

async function report(): Promise<void> {
  reports++;
  const calls = (callsPerSecond / services) * (reportMs / 1000) * reports;
  for (let index = 0; index < services; index++) {
    const breaker = Math.floor(clock.now() / 20_000 + index) % services === 0 ? 'open' : 'closed';
    const state = {
      name: `policy-${index}`,
      counters: {
        operations: calls,
        attempts: calls * 1.05,
        succeeded: calls * 0.99,
        succeededAfterRetry: calls * 0.04,
        stops: { breaker_open: calls * 0.01 },
      },
      killSwitch: false,
      targets: [{ target: 'shard-1', inFlight: 3, breaker }],
    } as unknown as PolicyState;
    await engine.presence.report({
      ...{ id: `p-${index}`, service: `service-${index}`, host: 'web', pid: index + 1, version: '1.0.0' },
      ...{ startedAt: 1, clockOffsetMs: 0, controlsVersion: 0, notObeyed: [], consumers: [], leftOut: 0 },
      policies: [state],
    });
  }
  await engine.triage.put(
    Array.from({ length: parkedPerReport }, () => parkedEvent(`e-${parked}`, parked++)),
  );
  again.setIn(reportMs);
}

const again = new Timer(clock, () => void report());
await report();
const opened = await openConsole({
  ...{ engine, clock, token: process.argv[2] },
  onError: (error) => console.error(error),
});
const { link } = await opened.listen({ port: 0 });
const startedAt = clock.now();
process.on('message', () => {
  const { user, system } = process.cpuUsage();
  process.send?.({ cpuMs: (user + system) / 1000, storeMs: clock.now() - startedAt } satisfies LiveMessage);
});
process.on('disconnect', () => process.exit());
process.send?.({ link } satisfies LiveMessage);

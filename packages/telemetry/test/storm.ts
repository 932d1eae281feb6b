import { type PolicySpec, policy } from 'holdfast';
import { scripted, seededRandom, type VirtualClock, virtualClock } from 'holdfast/testing';
import { onTestFinished } from 'vitest';
import { type Family, type Labels, type Observation, observe } from '../src/index.ts';

export const down = Object.assign(new Error('secret: hunter2'), { code: 'ECONNRESET' });
export const gone = Object.assign(new Error('secret: hunter2'), { status: 404 });

let policiesSoFar = 0;

/** A policy on virtual time under a name that no other test has, with nothing but what the test asks for. */
export function setup(spec: PolicySpec = {}) {
  const clock = virtualClock();
  const name = `storm-${++policiesSoFar}`;
  const bare: PolicySpec = {
    attemptTimeout: 'none',
    budget: false,
    breaker: false,
    backoff: { base: '100ms', jitter: 'none' },
  };
  const made = policy({ ...bare, name, ...spec }, { clock, random: seededRandom(name) });
  const call = (...beats: unknown[]) => scripted(clock, ...beats);
  return { clock, name, policy: made, call };
}

/** What `observe` keeps of one policy. */
export function watched(spec: PolicySpec = {}) {
  const made = setup(spec);
  const observed = observe([made.policy]);
  onTestFinished(() => observed.stop());
  return { ...made, observed, count: counter(observed) };
}

/** Reads one value out of a snapshot: the sum over all label sets that have these labels. */
export function counter(observed: Pick<Observation, 'snapshot'>) {
  return (name: string, labels: Labels = {}): number =>
    samplesOf(observed.snapshot(), name)
      .filter((sample) =>
        Object.entries(labels).every(([key, value]) => sample.labels[key as keyof Labels] === value),
      )
      .reduce((sum, { value }) => sum + value, 0);
}

export function samplesOf(families: readonly Family[], name: string) {
  return families.find((family) => family.name === name)?.samples ?? [];
}

/** Lets a run come to its end, however long its waits. */
export async function ended<T>(clock: VirtualClock, running: Promise<T>): Promise<T> {
  await clock.runAll();
  return running;
}

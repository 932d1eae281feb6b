import { advanceOperation, defaultReplay } from '../advance-operation.ts';
import type { Act } from '../controls.ts';
import type { NewEvent } from '../envelope.ts';
import type { Operation, OperationRequest, ReplayRequest } from '../operations.ts';
import type { ParkedFilter } from '../parked-filter.ts';
import { ensure } from './assertions.ts';
import { act, type Stage } from './stage.ts';

/** Parks `count` events of a new tenant, so that a filter by this tenant matches only these events. */
export async function parkMany(
  stage: Stage,
  count: number,
): Promise<{ ids: string[]; filter: { tenant: string } & ParkedFilter }> {
  const tenant = stage.name('tenant');
  const ids = Array.from({ length: count }, () => stage.name('event'));
  await stage.triage.put(ids.map((id) => stage.newlyParked(id, { tenant })));
  return { ids, filter: { tenant } };
}

export function beginReplay(stage: Stage, request: Partial<ReplayRequest>): Promise<Operation> {
  return stage.triage.operations.begin({ ...defaultReplay, filter: {}, ...request }, act);
}

/** Begins an operation and performs all its steps. If it is a replay, all its events succeed. */
export async function operate(stage: Stage, request: OperationRequest, by: Act = act): Promise<Operation> {
  const { id } = await stage.triage.operations.begin(request, by);
  await runToEnd(stage, id);
  return (await stage.triage.operations.get(id))!;
}

/** Replays all events that match a filter. An event fails again if `isFailure` returns true for its id. */
export async function replay(
  stage: Stage,
  filter: ParkedFilter,
  isFailure: (id: string) => boolean = () => false,
): Promise<Operation> {
  const request = { canary: 0, rate: Infinity, stopAbove: 1 };
  const { id } = await beginReplay(stage, { filter, ...request });
  await runToEnd(stage, id, async (events) => {
    const failed = events.filter((event) => isFailure(event.id!));
    await failAgain(stage, id, failed);
    await succeed(
      stage,
      id,
      events.filter((event) => !failed.includes(event)),
    );
  });
  return (await stage.triage.operations.get(id))!;
}

/** A check fails after this many steps, instead of running forever. */
const stepsMax = 2000;

/** Performs all steps of an operation. Returns the events that a replay published. */
export async function runToEnd(
  stage: Stage,
  id: string,
  publish: (events: readonly NewEvent[], topic: string) => Promise<unknown> = (events) =>
    succeed(stage, id, events),
): Promise<NewEvent[]> {
  const released: NewEvent[] = [];
  for (let steps = 0; steps < stepsMax; steps++) {
    const step = await advanceOperation(stage.triage, id, stage.harness.clock, async (topic, events) => {
      released.push(...events);
      await publish(events, topic);
    });
    if (step?.waitMs === undefined) return released;
    if (step.waitMs > 0) await stage.harness.passTime(step.waitMs);
  }
  const { stage: at, counts } = (await stage.triage.operations.get(id))!;
  ensure(false, `the operation comes to an end, and is ${at} with ${JSON.stringify(counts)}`);
}

async function succeed(stage: Stage, operation: string, events: readonly NewEvent[]): Promise<void> {
  await stage.triage.resolve(events.map(({ id }) => ({ id: id!, operation })));
}

export async function failAgain(stage: Stage, operation: string, events: readonly NewEvent[]): Promise<void> {
  const known = await Promise.all(events.map(({ id }) => stage.triage.get(id!)));
  await stage.triage.put(
    known.map((event) => {
      const { id, topic, tenant, diagnosis } = event!;
      return stage.newlyParked(id, { topic, tenant, diagnosis, replay: operation });
    }),
  );
}

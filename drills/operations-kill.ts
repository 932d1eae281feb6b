import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Engine, NewlyParked, Operation, ParkedFilter, ParkedStatus } from '@holdfast/contracts';
import { type Consumer, consumer, operations } from '@holdfast/events';
import { seededRandom } from 'holdfast/testing';
import type { DrillOptions } from '../scripts/drill.ts';
import { ownService } from '../scripts/services/service.ts';
import { openPlace, type Place } from './events/place.ts';

const EVENTS = 3000;
const TENANTS = 5;
/** After so many deaths an operation may finish, so that the drill comes to an end. */
const DEATHS_MAX = 3;
const KILL_WITHIN_MS = 60;
const act = { who: 'drill', why: 'a trial' };
const statuses: readonly ParkedStatus[] = ['parked', 'replaying', 'resolved', 'discarded'];

/**
 * Operations of every kind run in processes that are killed at random. Afterwards each event is in the state that a
 * model says, each operation has counted each event once, and the kept counts equal those of a scan.
 */
export async function drill({
  times = 300,
  engine = 'sqlite',
}: Partial<DrillOptions>): Promise<Record<string, number>> {
  if (engine !== 'sqlite' && engine !== 'postgres')
    throw new Error(`--engine wants sqlite or postgres, got "${engine}".`);
  const server = engine === 'postgres' ? await ownService('postgres') : undefined;
  if (server?.missing !== undefined) throw new Error(`The drill needs ${engine}: ${server.missing}.`);
  const folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-operations-'));
  const place: Place = { engine, address: server?.url ?? path.join(folder, 'events.db'), record: '' };
  try {
    return await trial(place, times);
  } finally {
    await server?.stop();
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

async function trial(place: Place, times: number): Promise<Record<string, number>> {
  const engine = await openPlace(place);
  const model = new Model();
  await parkAll(engine);
  const handled = new Map<string, number>();
  const handler = await startConsumer(engine, handled);
  const random = seededRandom('operations-kill');
  const counts: Record<string, number> = { kills: 0, operations: 0, lost: 0, repeated: 0 };
  try {
    while (counts.kills! < times) {
      const kind = model.nextKind(random());
      const tenant = `tenant-${Math.floor(random() * TENANTS)}`;
      const before = new Map(handled);
      const operation = await begin(engine, kind, tenant);
      counts.kills! += await runAndKill(place, operation.id, random);
      counts.operations! += 1;
      counts[kind] = (counts[kind] ?? 0) + 1;
      const ended = (await engine.triage.operations.get(operation.id))!;
      must(ended.stage === 'done', `operation ${operation.id} (${kind}) ends, and is ${ended.stage}`);
      const affected = model.apply(kind, tenant);
      const done = kind === 'replay' ? ended.counts.succeeded : ended.counts.changed;
      counts.lost! += Math.max(0, affected.length - done);
      counts.repeated! += Math.max(0, done - affected.length);
      if (kind === 'replay') {
        for (const id of affected) counts.repeated! += (handled.get(id) ?? 0) - (before.get(id) ?? 0) - 1;
      }
      await compare(engine, model);
      if (model.isSpent) await parkAgain(engine, model);
    }
  } finally {
    await handler.stop();
    await engine.close();
  }
  for (const what of ['lost', 'repeated'])
    must(counts[what] === 0, `nothing is ${what}, ${counts[what]} are`);
  return counts;
}

type Kind = 'discard' | 'restore' | 'keep' | 'undo' | 'replay';

/** What the store must hold. */
class Model {
  readonly statusOf = new Map<string, ParkedStatus>(ids().map((id) => [id, 'parked']));
  /** What the last discard or restore has changed, if it can still be undone. */
  #undoable: { readonly changed: readonly string[]; readonly to: ParkedStatus } | undefined;

  get isSpent(): boolean {
    return [...this.statusOf.values()].filter((status) => status === 'resolved').length > EVENTS / 2;
  }

  nextKind(chance: number): Kind {
    if (this.#undoable && chance < 0.3) return 'undo';
    const kinds: readonly Kind[] = ['discard', 'restore', 'keep', 'discard', 'restore', 'replay'];
    return kinds[Math.floor(((chance * 7919) % 1) * kinds.length)]!;
  }

  /** Applies an operation, and returns the ids of the events that it changes. */
  apply(kind: Kind, tenant: string): string[] {
    if (kind === 'undo') {
      const { changed, to } = this.#undoable!;
      this.#undoable = undefined;
      for (const id of changed) this.statusOf.set(id, to);
      return [...changed];
    }
    const from: ParkedStatus = kind === 'restore' ? 'discarded' : 'parked';
    const to = { discard: 'discarded', restore: 'parked', keep: 'parked', replay: 'resolved' } as const;
    const changed = ids().filter((id) => tenantOf(id) === tenant && this.statusOf.get(id) === from);
    for (const id of changed) this.statusOf.set(id, to[kind]);
    // A keep changes no status, so that only the last discard or restore is undone here.
    if (kind === 'keep' || kind === 'replay') this.#undoable = undefined;
    else this.#undoable = { changed, to: from };
    return changed;
  }
}

function ids(): string[] {
  return Array.from({ length: EVENTS }, (_, index) => `event-${String(index).padStart(5, '0')}`);
}

function tenantOf(id: string): string {
  return `tenant-${Number(id.slice(6)) % TENANTS}`;
}

async function parkAll({ triage, broker }: Required<Engine>): Promise<void> {
  await broker.declare('drill');
  await triage.put(ids().map(parked));
}

function parked(id: string): NewlyParked {
  return {
    id,
    topic: 'drill',
    payload: '{}',
    type: 'trial',
    key: undefined,
    tenant: tenantOf(id),
    headers: {},
    correlationId: id,
    idempotencyKey: id,
    originTopic: 'drill',
    firstSeenAt: 1,
    expiresAt: undefined,
    replay: undefined,
    diagnosis: {
      reason: 'Error',
      message: `a reason of ${Number(id.slice(6)) % 7}`,
      stop: `stop-${Number(id.slice(6)) % 7}`,
      finalAttempt: 3,
      consumer: 'drill',
      error: undefined,
      story: [],
    },
  };
}

/** Resolved events are parked once more, so that there is something to do. */
async function parkAgain({ triage }: Required<Engine>, model: Model): Promise<void> {
  const resolved = ids().filter((id) => model.statusOf.get(id) === 'resolved');
  await triage.put(resolved.map(parked));
  for (const id of resolved) model.statusOf.set(id, 'parked');
}

async function startConsumer(engine: Required<Engine>, handled: Map<string, number>): Promise<Consumer> {
  const made = consumer({
    engine,
    topic: 'drill',
    name: 'drill@1',
    effects: 'off',
    handler: ({ id }) => void handled.set(id, (handled.get(id) ?? 0) + 1),
  });
  await made.start();
  return made;
}

async function begin(engine: Required<Engine>, kind: Kind, tenant: string): Promise<Operation> {
  const runner = operations({ engine });
  const filter: ParkedFilter = { topic: 'drill', tenant };
  if (kind === 'replay')
    return runner.begin({ kind, filter, rate: 100_000, canary: 0, outstandingMax: 10_000 }, act);
  if (kind === 'keep') return runner.begin({ kind, filter, keepMs: 864e5 }, act);
  if (kind !== 'undo') return runner.begin({ kind, filter }, act);
  const [latest] = (await engine.audit.list({ what: ['discard', 'restore'] }, { limit: 1 })).items;
  const of = latest!.subjects.find((subject) => subject.startsWith('operation:'))!.slice('operation:'.length);
  return runner.begin({ kind, of }, { ...act, undoes: latest!.id });
}

/** Runs an operation in processes, of which up to three are killed. Returns how many were. */
async function runAndKill(place: Place, id: string, random: () => number): Promise<number> {
  for (let deaths = 0; ; ) {
    const child = fork(
      path.join(import.meta.dirname, 'parked/operator-process.ts'),
      [JSON.stringify(place), id],
      {
        execArgv: ['--conditions=holdfast-source', '--no-warnings'],
      },
    );
    const ended = once(child, 'exit');
    await Promise.race([once(child, 'message'), ended]);
    if (deaths < DEATHS_MAX) {
      await pause(random() * KILL_WITHIN_MS);
      if (isRunning(child)) {
        child.kill('SIGKILL');
        await ended;
        deaths += 1;
        continue;
      }
    }
    const [code] = await ended;
    must(code === 0, `an operator that is left alone ends well, and ended with ${code}`);
    return deaths;
  }
}

function isRunning({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode === null && signalCode === null;
}

/** The store holds what the model says, and its kept counts equal those of a scan. */
async function compare({ triage }: Required<Engine>, model: Model): Promise<void> {
  const found = new Map<string, ParkedStatus>();
  let cursor: string | undefined;
  do {
    const page = await triage.list(
      { status: statuses },
      { limit: 1000, ...(cursor !== undefined && { cursor }) },
    );
    for (const { id, status } of page.items) found.set(id, status);
    ({ cursor } = page);
  } while (cursor !== undefined);
  for (const [id, status] of model.statusOf)
    must(found.get(id) === status, `${id} is ${status}, and was found ${found.get(id) ?? 'nowhere'}`);
  for (const status of statuses) {
    const kept = await triage.count({ topic: 'drill', status });
    const scanned = await triage.count({ topic: 'drill', status, from: 0 });
    must(kept === scanned, `${scanned} events are ${status}, and the kept count says ${kept}`);
  }
}

function must(isSo: boolean, what: string): void {
  if (!isSo) throw new Error(`Broken promise: ${what}.`);
}

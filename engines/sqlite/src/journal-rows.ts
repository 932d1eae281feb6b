import type {
  AssemblyState,
  Payload,
  StepRecord,
  StoredAssembly,
  StoredSignal,
  StoredStep,
} from '@holdfast/contracts';

type Row = Record<string, unknown>;

/** The stored numbers of states. An open assembly is running if it has a lease; otherwise it is waiting. */
export const OPEN = 0;
export const PARKED = 1;
export const DONE = 2;
export const STOPPED = 3;

export const assemblyColumns = `
  assembly.*, program.name, program.version, queue.name AS queue_name, lease.worker IS NOT NULL AS is_leased,
  coalesce(lease.deaths, due.deaths, 0) AS deaths, due.due_at, worker.name AS worker_name`;

export const assemblyTables = `
  holdfast_assembly assembly
  JOIN holdfast_program program ON program.id = assembly.program
  LEFT JOIN holdfast_assembly_queue queue ON queue.id = assembly.queue
  LEFT JOIN holdfast_assembly_lease lease ON lease.seq = assembly.seq
  LEFT JOIN holdfast_assembly_worker worker ON worker.id = lease.worker
  LEFT JOIN holdfast_assembly_due due ON due.seq = assembly.seq`;

export function toAssembly(row: Row): StoredAssembly {
  return {
    id: String(row.id),
    name: String(row.name),
    version: Number(row.version),
    state: stateOf(Number(row.state), Boolean(row.is_leased)),
    input: row.input as Payload,
    result: (row.result ?? undefined) as Payload | undefined,
    stop: parsed(row.stop),
    parked: parsed(row.parked),
    committed: Boolean(row.is_committed),
    acceptedAt: Number(row.accepted_at),
    expiresAt: numberOf(row.expires_at),
    endedAt: numberOf(row.ended_at),
    dueAt: numberOf(row.due_at),
    queue: textOf(row.queue_name),
    key: textOf(row.key),
    tenant: textOf(row.tenant),
    settings: textOf(row.settings),
    revision: Number(row.revision),
    deaths: Number(row.deaths),
    worker: textOf(row.worker_name),
    acts: parsed(row.acts) ?? [],
  };
}

export function stateOf(state: number, isLeased: boolean): AssemblyState {
  if (state === OPEN) return isLeased ? 'running' : 'waiting';
  if (state === PARKED) return isLeased ? 'running' : 'parked';
  return state === DONE ? 'done' : 'stopped';
}

export function toStep(row: Row): StoredStep {
  const dueAt = numberOf(row.due_at);
  const result = (row.result ?? undefined) as Payload | undefined;
  return {
    path: String(row.path),
    kind: row.kind as StoredStep['kind'],
    state: row.state as StoredStep['state'],
    order: Number(row.step_order),
    attempts: Number(row.attempts),
    at: Number(row.at),
    ...(dueAt !== undefined && { dueAt }),
    ...(result !== undefined && { result }),
    ...parsed<object>(row.rest),
  };
}

/** Returns the rarely used fields of a step as JSON; null: it has none of them. */
export function restOf({ error, because, story, signal }: StepRecord): string | null {
  if (error === undefined && because === undefined && signal === undefined && !story?.length) return null;
  return JSON.stringify({ error, because, story, signal });
}

export function toSignal(row: Row): StoredSignal {
  return {
    number: Number(row.number),
    id: String(row.id),
    name: String(row.name),
    payload: (row.payload ?? undefined) as Payload | undefined,
    at: Number(row.at),
  };
}

function parsed<T>(text: unknown): T | undefined {
  return typeof text === 'string' ? (JSON.parse(text) as T) : undefined;
}

function numberOf(value: unknown): number | undefined {
  return value === null || value === undefined ? undefined : Number(value);
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

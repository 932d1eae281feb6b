import type {
  AssemblyFilter,
  AssemblyState,
  StepKind,
  StepRecord,
  StepState,
  StoredAssembly,
  StoredSignal,
  StoredStep,
} from '@holdfast/contracts';
import { storableJson } from './column-values.ts';
import type { Row } from './database.ts';
import { payloadFrom } from './journal-payload.ts';

/**
 * The stored numbers of states. State 0 is open: with a lease the assembly is running, without one it is
 * waiting.
 */
const DONE = 2;
const PARKED = 1;

const kinds: readonly StepKind[] = ['run', 'transaction', 'sleep', 'wait', 'child', 'change', 'undo'];
const states: readonly StepState[] = ['done', 'failed', 'begun', 'retrying', 'waiting'];

export function kindNumber(kind: StepKind): number {
  return kinds.indexOf(kind);
}

export function stateNumber(state: StepState): number {
  return states.indexOf(state);
}

/** A step with a state below this number is settled: `done` or `failed`. */
export const settledBelow = 2;

const assemblyColumns = `a.seq, a.id, program.name, program.version, a.state, lease.seq IS NOT NULL, a.input, a.input_bytes, a.result,
  a.result_bytes, a.stop, a.parked, a.is_committed, a.accepted_at, a.expires_at, a.ended_at, due.due_at, queue.name, a.key, a.tenant,
  a.settings, a.revision, coalesce(lease.deaths, due.deaths, 0), worker.name, a.acts, a.keep_ms, a.queue`;

const assemblyTables = `{schema}.assembly a
  JOIN {schema}.assembly_program program ON program.program = a.program
  LEFT JOIN {schema}.assembly_queue queue ON queue.queue = a.queue
  LEFT JOIN {schema}.assembly_lease lease ON lease.seq = a.seq
  LEFT JOIN {schema}.assembly_worker worker ON worker.worker = lease.worker
  LEFT JOIN {schema}.assembly_due due ON due.seq = a.seq`;

export const assembliesText = `SELECT ${assemblyColumns} FROM ${assemblyTables}`;

const bytesText = (column: string) => `encode(${column}, 'base64')`;

/**
 * One statement reads an assembly with its steps and signals, so that all are from the same point in time.
 */
export const claimedText = `SELECT ${assemblyColumns},
  (SELECT json_agg(json_build_array(s.path, s.kind, s.state, s.step_order, s.attempts, s.at, s.due_at, s.result, ${bytesText('s.result_bytes')},
    s.rest) ORDER BY s.step_order, s.path)::text FROM {schema}.assembly_step s WHERE s.seq = a.seq),
  (SELECT json_agg(json_build_array(g.number, g.id, g.name, g.payload, ${bytesText('g.payload_bytes')}, g.at) ORDER BY g.number)::text
    FROM {schema}.assembly_signal g WHERE g.seq = a.seq)
  FROM unnest($1::bigint[]) WITH ORDINALITY AS wanted(seq, place) JOIN ${assemblyTables.replace('assembly a', 'assembly a ON a.seq = wanted.seq')}
  ORDER BY wanted.place`;

export const stepsText = `SELECT s.path, s.kind, s.state, s.step_order, s.attempts, s.at, s.due_at, s.result, s.result_bytes, s.rest
  FROM {schema}.assembly_step s JOIN {schema}.assembly a ON a.seq = s.seq
  WHERE a.id = $1 AND (s.step_order, s.path) > ($2, $3) ORDER BY s.step_order, s.path LIMIT $4`;

export const signalsText = `SELECT g.number, g.id, g.name, g.payload, g.payload_bytes, g.at
  FROM {schema}.assembly_signal g JOIN {schema}.assembly a ON a.seq = g.seq WHERE a.id = $1 AND g.number > $2 ORDER BY g.number`;

/** The number of columns of `assembliesText`. */
const columnCount = 27;

export interface AssemblyRow {
  readonly seq: number;
  readonly keepMs: number;
  readonly queue: number;
  readonly stored: StoredAssembly;
}

export function assemblyOf(row: Row): AssemblyRow {
  const [seq, id, name, version, state, isLeased, input, inputBytes, result, resultBytes, stop, parked] = row;
  const [committed, acceptedAt, expiresAt, endedAt, dueAt, queue, key, tenant, settings] = row.slice(12);
  const [revision, deaths, worker, acts, keepMs, queueNumber] = row.slice(21);
  return {
    seq: seq as number,
    keepMs: keepMs as number,
    queue: queueNumber as number,
    stored: {
      id: id as string,
      name: name as string,
      version: version as number,
      state: stateOf(state as number, isLeased as boolean),
      input: payloadFrom(input, inputBytes)!,
      result: payloadFrom(result, resultBytes),
      stop: jsonOf(stop),
      parked: jsonOf(parked),
      committed: committed as boolean,
      acceptedAt: acceptedAt as number,
      expiresAt: given(expiresAt),
      endedAt: given(endedAt),
      dueAt: isLeased ? undefined : given(dueAt),
      queue: given(queue),
      key: given(key),
      tenant: given(tenant),
      settings: given(settings),
      revision: revision as number,
      deaths: deaths as number,
      worker: given(worker),
      acts: jsonOf(acts) ?? [],
    },
  };
}

export function recordsOf(row: Row): { steps: StoredStep[]; signals: StoredSignal[] } {
  const [steps, signals] = row.slice(columnCount);
  return {
    steps: (jsonOf<Row[]>(steps) ?? []).map((step) => stepOf(step.with(8, bytesIn(step[8])))),
    signals: (jsonOf<Row[]>(signals) ?? []).map((signal) => signalOf(signal.with(4, bytesIn(signal[4])))),
  };
}

export function stateOf(state: number, isLeased: boolean): AssemblyState {
  if (state < DONE && isLeased) return 'running';
  if (state < DONE) return state === PARKED ? 'parked' : 'waiting';
  return state === DONE ? 'done' : 'stopped';
}

export function stepOf(row: Row): StoredStep {
  const [path, kind, state, order, attempts, at, dueAt, result, bytes, rest] = row;
  const payload = payloadFrom(result, bytes);
  return {
    path: path as string,
    kind: kinds[kind as number]!,
    state: states[state as number]!,
    order: order as number,
    attempts: attempts as number,
    at: at as number,
    ...(dueAt !== null && { dueAt: dueAt as number }),
    ...(payload !== undefined && { result: payload }),
    ...jsonOf<object>(rest),
  };
}

/** Returns the rarely used fields of a step as JSON; null: it has none of them. */
export function restOf({ error, because, story, signal }: StepRecord): string | null {
  if (error === undefined && because === undefined && signal === undefined && !story?.length) return null;
  return storableJson({ error, because, story, signal });
}

export function signalOf([number, id, name, payload, bytes, at]: Row): StoredSignal {
  return {
    number: number as number,
    id: id as string,
    name: name as string,
    payload: payloadFrom(payload, bytes),
    at: at as number,
  };
}

/** Returns the SQL conditions of a filter, and appends their values to `values`. */
export function conditionsOf(filter: AssemblyFilter, values: unknown[]): string {
  const { name, version, state, queue, key, tenant, fingerprint, stopping } = filter;
  const where: string[] = [];
  const add = (condition: string, value: unknown) => {
    if (value === undefined) return;
    values.push(value);
    where.push(condition.replace('?', `$${values.length}`));
  };
  add('program.name = ?', name);
  add('program.version = ?', version);
  add('queue.name = ?', queue);
  add('a.key = ?', key);
  add('a.tenant = ?', tenant);
  add(`(a.parked::json -> 'error' ->> 'fingerprint') = ?`, fingerprint);
  if (stopping !== undefined) where.push(`a.stop IS ${stopping ? 'NOT NULL' : 'NULL'}`);
  const isParked = 'a.seq IN (SELECT seq FROM {schema}.assembly_parked)';
  if (fingerprint !== undefined) where.push(isParked);
  const ofState = {
    waiting: 'a.state = 0 AND lease.seq IS NULL',
    running: 'lease.seq IS NOT NULL',
    parked: `${isParked} AND lease.seq IS NULL`,
    done: 'a.state = 2',
    stopped: 'a.state = 3',
  };
  if (state !== undefined) where.push(ofState[state]);
  return where.map((each) => ` AND ${each}`).join('');
}

function bytesIn(text: unknown): Buffer | null {
  return typeof text === 'string' ? Buffer.from(text, 'base64') : null;
}

function jsonOf<T>(text: unknown): T | undefined {
  return typeof text === 'string' ? (JSON.parse(text) as T) : undefined;
}

function given<T>(value: unknown): T | undefined {
  return value === null ? undefined : (value as T);
}

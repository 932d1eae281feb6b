import type { StoredAssembly, StoredStep } from '@holdfast/contracts';
import { readSettings } from './assembly-settings.ts';

/**
 * Where an assembly is, for the customer. `accepted`: nothing was done yet. `waiting`: for a time, a retry, a signal or a
 * child. `back-order`: the customer is asked to wait longer. `parked`: a person is looking at it. `compensating`: what was done is being undone.
 */
export type StatusState =
  | 'accepted'
  | 'running'
  | 'waiting'
  | 'back-order'
  | 'parked'
  | 'compensating'
  | 'done'
  | 'stopped';

/** With these words the reason of a wait begins for which the customer is asked to wait longer. */
export const backOrderWords = 'back order: ';

/** What a customer is told about an assembly: one sentence, and the numbers behind it. */
export interface AssemblyStatus {
  readonly id: string;
  readonly name: string;
  readonly version: number;
  readonly state: StatusState;
  /** One sentence for the customer: "step 2 of 4, trying again in 3 s". */
  readonly text: string;
  readonly progress: Progress;
  /** What it waits for, in words. */
  readonly because: string | undefined;
  /** Why it has stopped, or is parked. */
  readonly stop: StoredAssembly['stop'];
  readonly parked: StoredAssembly['parked'];
  /** The class of patience that was chosen at the start. */
  readonly patienceClass: string | undefined;
  /** Ms until the customer's patience ends; Infinity without a limit. */
  readonly patienceLeftMs: number;
  /** Ms until the next thing is due; `undefined` if that is not known. */
  readonly nextInMs: number | undefined;
  readonly acceptedAt: number;
  readonly endedAt: number | undefined;
}

/** How far an assembly is. `of` is known only for a program with a plan. */
export interface Progress {
  /** The number of steps that are done. */
  readonly done: number;
  /** The number of steps of the program's `plan`; `undefined` without one. */
  readonly of: number | undefined;
  /** The steps that are under way, with their attempts. */
  readonly current: readonly {
    readonly step: string;
    readonly attempts: number;
    readonly dueInMs: number | undefined;
  }[];
}

/** Makes the status of an assembly from what is stored. */
export function statusOf(stored: StoredAssembly, steps: readonly StoredStep[], now: number): AssemblyStatus {
  const { id, name, version, stop, parked, acceptedAt, endedAt, expiresAt = Infinity } = stored;
  const { plan, class: patienceClass } = readSettings(stored.settings);
  const forward = steps.filter(({ kind }) => kind !== 'undo' && kind !== 'change');
  const finished = forward.filter(({ state }) => state === 'done');
  const open = steps.filter(({ state }) => state === 'retrying' || state === 'waiting');
  const dueAt = Math.min(stored.dueAt ?? Infinity, ...open.map((step) => step.dueAt ?? Infinity));
  const state = stateOf(stored, steps.length, open);
  const done = plan
    ? plan.filter((step) => finished.some(({ path }) => isPart(path, step))).length
    : finished.length;
  const because = open.find((step) => step.because !== undefined)?.because;
  const progress: Progress = {
    done,
    of: plan?.length,
    current: open.map(({ path, attempts, dueAt: at }) => ({
      step: path,
      attempts,
      dueInMs: at === undefined ? undefined : Math.max(0, at - now),
    })),
  };
  const retrying = open.find((step) => step.state === 'retrying');
  return {
    ...{ id, name, version, state, progress, because, stop, parked, patienceClass, acceptedAt, endedAt },
    text: textOf(
      state,
      progress,
      because,
      stop?.message,
      retrying && Math.max(0, (retrying.dueAt ?? now) - now),
    ),
    patienceLeftMs: Math.max(0, expiresAt - now),
    nextInMs: dueAt < Infinity ? Math.max(0, dueAt - now) : undefined,
  };
}

function stateOf({ state, stop }: StoredAssembly, steps: number, open: readonly StoredStep[]): StatusState {
  if (state === 'done' || state === 'stopped' || state === 'parked') return state;
  if (stop) return 'compensating';
  if (steps === 0) return state === 'running' ? 'running' : 'accepted';
  if (open.some(({ because }) => because?.startsWith(backOrderWords))) return 'back-order';
  return open.length > 0 ? 'waiting' : 'running';
}

function isPart(path: string, step: string): boolean {
  return path === step || path.startsWith(`${step}/`) || path.startsWith(`${step}#`);
}

function textOf(
  state: StatusState,
  { done, of }: Progress,
  because: string | undefined,
  stopped: string | undefined,
  retryInMs: number | undefined,
): string {
  if (state === 'done' || state === 'accepted') return state;
  if (state === 'stopped') return `stopped because ${stopped}`;
  if (state === 'compensating') return `being undone because ${stopped}`;
  if (state === 'parked') return 'a person is looking at it';
  const where = of === undefined ? `${done} steps done` : `step ${Math.min(done + 1, of)} of ${of}`;
  if (retryInMs !== undefined) return `${where}, trying again in ${Math.ceil(retryInMs / 1000)} s`;
  return because === undefined ? where : `${where}, ${because}`;
}

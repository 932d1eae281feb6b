import type { StoredAssembly, StoredStep } from '@holdfast/contracts';
import { readSettings } from './assembly-settings.ts';

/**
 * The state of an assembly, as the customer sees it. `accepted`: nothing was done yet. `waiting`: it waits
 * for a time, a retry, a signal or a child. `back-order`: the customer is asked to wait longer. `parked`: it
 * waits for an operator. `compensating`: finished steps are being undone.
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

/**
 * If the `because` of a stored wait begins with this text, the wait has the option `backOrder`, and the
 * status of the assembly is `back-order`.
 */
export const backOrderWords = 'back order: ';

/** What a customer may know about an assembly: one sentence, and the facts of which the sentence is made. */
export interface AssemblyStatus {
  readonly id: string;
  readonly name: string;
  readonly version: number;
  readonly state: StatusState;
  /** One sentence for the customer: "step 2 of 4, trying again in 3 s". */
  readonly text: string;
  readonly progress: Progress;
  /** What the assembly waits for, as text for the customer. */
  readonly because: string | undefined;
  /** Why the assembly was stopped; `undefined` if it was not. */
  readonly stop: StoredAssembly['stop'];
  readonly parked: StoredAssembly['parked'];
  /** The name of the patience class that was chosen at the start. */
  readonly patienceClass: string | undefined;
  /** Ms until the customer's patience ends; Infinity if there is no limit. */
  readonly patienceLeftMs: number;
  /** Ms until the next retry, end of a sleep or other due time; `undefined` if no time is known. */
  readonly nextInMs: number | undefined;
  readonly acceptedAt: number;
  readonly endedAt: number | undefined;
}

/** The progress of an assembly. `of` is known only if the program has a `plan`. */
export interface Progress {
  /** The number of finished steps. If the program has a `plan`, only steps in the plan count. */
  readonly done: number;
  /** The number of steps in the program's `plan`; `undefined` if it has no plan. */
  readonly of: number | undefined;
  /** The steps that wait or will be retried, with the number of their attempts so far. */
  readonly current: readonly {
    readonly step: string;
    readonly attempts: number;
    readonly dueInMs: number | undefined;
  }[];
}

/** Computes the status of an assembly from its stored record and its stored steps. */
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
  if (state === 'parked') return 'waits for a person';
  const where = of === undefined ? `${done} steps done` : `step ${Math.min(done + 1, of)} of ${of}`;
  if (retryInMs !== undefined) return `${where}, trying again in ${Math.ceil(retryInMs / 1000)} s`;
  return because === undefined ? where : `${where}, ${because}`;
}

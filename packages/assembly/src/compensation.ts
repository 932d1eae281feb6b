import type { Journal, StepKind, StoredStep } from '@holdfast/contracts';
import { StepFailedError } from './assembly-errors.ts';
import type { ProgramRun } from './program-run.ts';
import type { Scope } from './program-scope.ts';
import { childSignal, type Underway } from './run-port.ts';
import type { StepContext, Undo, UndoContext } from './step.ts';
import { type PolicyEnvironment, undoPolicy } from './step-policy.ts';
import { fromStored } from './stored-value.ts';

/** A step that must be compensated. */
export interface Compensation {
  readonly path: string;
  readonly kind: StepKind;
  readonly outcome: 'done' | 'unknown';
  readonly record: StoredStep | undefined;
  readonly undo: Undo<never> | undefined;
  readonly undoPolicy: unknown;
}

/**
 * Returns the steps to compensate, the latest first: those that are done, and those whose outcome is unknown.
 * If `mayHaveBegun` is true, steps without a record are included, because a worker may have died while it ran
 * them.
 */
export function compensationsIn(
  steps: readonly Underway[],
  records: ReadonlyMap<string, StoredStep>,
  mayHaveBegun: boolean,
): Compensation[] {
  const found: Compensation[] = [];
  for (const { path, request } of steps) {
    const { kind, undo } = request;
    const record = records.get(path);
    if (kind === 'child' ? !record : !undo) continue;
    const outcome = record ? outcomeOf(record) : mayHaveBegun ? 'unknown' : undefined;
    if (outcome) found.push({ path, kind, outcome, record, undo, undoPolicy: request.undoPolicy });
  }
  return found.sort((one, other) => (other.record?.order ?? Infinity) - (one.record?.order ?? Infinity));
}

function outcomeOf({ state, kind, story }: StoredStep): Compensation['outcome'] | undefined {
  if (state === 'done' || kind === 'child') return 'done';
  // A transaction step without a result was rolled back, and a fatal error means that the step had no effect.
  // So these steps need no compensation.
  if (kind === 'transaction' || (state === 'failed' && story?.at(-1)?.class === 'fatal')) return undefined;
  return 'unknown';
}

export interface CompensationRun {
  readonly run: ProgramRun;
  readonly root: Scope;
  readonly id: string;
  readonly found: readonly Compensation[];
  readonly journal: Journal;
  readonly environment: PolicyEnvironment;
}

/** Runs the compensations one after the other. Each is a step of its own: it is recorded and retried. */
export async function compensationProgram(compensation: CompensationRun): Promise<void> {
  for (const each of compensation.found) {
    if (each.kind === 'child') await stopChild(compensation, each);
    else await undoStep(compensation, each);
  }
}

async function undoStep({ run, root, id, environment }: CompensationRun, each: Compensation): Promise<void> {
  const { path, outcome, record, undo } = each;
  const result = outcome === 'done' ? fromStored(record?.result) : undefined;
  const stepKey = `${id}/${path}`;
  await run.ask(
    root,
    `~undo/${path}`,
    {
      kind: 'undo',
      policy: undoPolicy(each.undoPolicy as never, environment),
      fn: async (context: StepContext) => {
        // A spread would lose `signal`, which is a getter of a class.
        const undoContext: UndoContext = {
          key: context.key,
          attempt: context.attempt,
          patienceLeftMs: context.patienceLeftMs,
          get signal() {
            return context.signal;
          },
          outcome,
          stepKey,
        };
        // Do not return the result of `undo`: nothing reads it, and it might not be storable as JSON.
        await undo!(result as never, undoContext);
      },
    },
    `~undo/${path}`,
  );
}

/** Asks a child assembly to stop, and waits until the child has compensated its own steps. */
async function stopChild(
  { run, root, id, journal, environment }: CompensationRun,
  each: Compensation,
): Promise<void> {
  const childId = `${id}/${each.path}`;
  const stop = { because: 'cancelled', message: `its parent ${id} is compensated` };
  const asked = `~undo/${each.path}`;
  const answer = await run.ask(
    root,
    asked,
    {
      kind: 'undo',
      policy: undoPolicy(undefined, environment),
      fn: async () => {
        const [result] = await journal.requestStop([{ id: childId, stop }]);
        return result;
      },
    },
    asked,
  );
  if (answer === 'unknown') return;
  if (answer === 'committed')
    throw new StepFailedError(
      asked,
      'committed',
      undefined,
      [],
      `child ${childId} can not be compensated any more`,
    );
  const waited = `${asked}/stopped`;
  await run.ask(root, waited, { kind: 'undo', signal: `${childSignal(each.path)}/stopped` }, waited);
}

import type { AttemptRecord, ErrorNote, ParkNote, StopNote } from '@holdfast/contracts';
import { HoldfastError } from 'holdfast';

/**
 * A step failed, and no more attempts are made. The program gets this error with the same data in each run.
 * `cause` is the error object that the step threw; it exists only in the process in which it was thrown.
 */
export class StepFailedError extends HoldfastError {
  /** The path of the step. */
  declare readonly step: string;
  /** The stop reason: why there are no more attempts. */
  declare readonly because: string;
  declare readonly note: ErrorNote | undefined;
  declare readonly story: readonly AttemptRecord[];
  /** The errors of other failed steps in the same `all` or `each`. */
  readonly also: StepFailedError[] = [];

  constructor(
    step: string,
    because: string,
    note: ErrorNote | undefined,
    story: readonly AttemptRecord[],
    cause: unknown,
  ) {
    const said = note ? `: ${note.message}` : '';
    super(
      'HOLDFAST_STEP_FAILED',
      `step ${step} failed (${because})${said}`,
      cause === undefined ? undefined : { cause },
    );
    this.step = step;
    this.because = because;
    this.note = note;
    this.story = story;
  }
}

/**
 * Two steps with the same name run at the same time in one scope. After a crash their records could not be
 * told apart.
 */
export class AmbiguousStepError extends HoldfastError {
  constructor(path: string) {
    super(
      'HOLDFAST_STEP_AMBIGUOUS',
      `step ${path} is under way already: give parallel steps names of their own, or use each`,
    );
  }
}

/** The result of an attempt did not pass the step's `check`. */
export class CheckFailedError extends HoldfastError {
  constructor(step: string, problems: readonly string[]) {
    super('HOLDFAST_STEP_CHECK', `the result of step ${step} did not pass its check: ${problems.join('; ')}`);
  }
}

/** The awaited signal did not arrive before the wait timed out. */
export class SignalTimeoutError extends HoldfastError {
  constructor(signal: string) {
    super('HOLDFAST_SIGNAL_TIMEOUT', `no signal ${signal} came in time`);
  }
}

/** The code of the program has changed: it asks for other steps than those on record. */
export class ProgramChangedError extends HoldfastError {
  /** The path of a recorded step that the program did not ask for, or asked for as another kind of step. */
  declare readonly step: string;

  constructor(program: string, step: string, what: string) {
    super('HOLDFAST_PROGRAM_CHANGED', `${program}: ${what}`);
    this.step = step;
  }
}

/** The assembly was stopped before its end, and its finished steps were compensated. */
export class AssemblyStoppedError extends HoldfastError {
  declare readonly id: string;
  declare readonly stop: StopNote;

  constructor(id: string, stop: StopNote) {
    super('HOLDFAST_ASSEMBLY_STOPPED', `assembly ${id} was stopped (${stop.because}): ${stop.message}`);
    this.id = id;
    this.stop = stop;
  }
}

/** The assembly is parked: it waits until a person resumes or cancels it. */
export class AssemblyParkedError extends HoldfastError {
  declare readonly id: string;
  /** Why the assembly is parked. */
  declare readonly parked: ParkNote;
  /** The path of the step that failed; `undefined` if no step is to blame. */
  declare readonly step: string | undefined;

  constructor(id: string, parked: ParkNote) {
    super(
      'HOLDFAST_ASSEMBLY_PARKED',
      `assembly ${id} is parked (${parked.because}): ${parked.message}; "holdfast assembly show ${id}" shows it, ` +
        `and "holdfast assembly resume ${id} --why <reason>" continues it`,
    );
    this.id = id;
    this.parked = parked;
    this.step = parked.paths[0];
  }
}

/** An assembly with this id exists, but it was started with another program or input. */
export class MismatchError extends HoldfastError {
  constructor(id: string) {
    super('HOLDFAST_ASSEMBLY_MISMATCH', `assembly ${id} was started before with another program or input`);
  }
}

/** No assembly has this id: it was never started, or its record was deleted after its retention time. */
export class UnknownAssemblyError extends HoldfastError {
  constructor(id: string) {
    super('HOLDFAST_ASSEMBLY_UNKNOWN', `there is no assembly ${id}`);
  }
}

/**
 * The requested operation is not possible in the present state of the assembly. `result()` also rejects with
 * this error if `stop` of `assemblies()` was called before the assembly has ended.
 */
export class AssemblyStateError extends HoldfastError {
  constructor(id: string, message: string) {
    super('HOLDFAST_ASSEMBLY_STATE', `assembly ${id} ${message}`);
  }
}

/**
 * The abort reason of a step's signal. The assembly was cancelled or out of time, another branch won the
 * race, or another worker has the lease.
 */
export class StepAbortedError extends HoldfastError {
  constructor(because: string) {
    super('HOLDFAST_STEP_ABORTED', `the step was aborted: ${because}`);
  }
}

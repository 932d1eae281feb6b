import type { AttemptRecord, ErrorNote, StopNote } from '@holdfast/contracts';
import { HoldfastError } from 'holdfast';

/**
 * A step was given up on. The program gets this error each time it runs, with the same data; `cause` is the real error as
 * long as the process lives in which it was thrown.
 */
export class StepFailedError extends HoldfastError {
  /** The path of the step. */
  declare readonly step: string;
  /** Why there are no more attempts: a stop reason of `holdfast`. */
  declare readonly because: string;
  declare readonly note: ErrorNote | undefined;
  declare readonly story: readonly AttemptRecord[];
  /** Other steps of the same `all` or `each` that failed as well. */
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

/** Two steps of one name are under way in one scope: after a crash nobody could tell them apart. */
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

/** No signal came in time. */
export class SignalTimeoutError extends HoldfastError {
  constructor(signal: string) {
    super('HOLDFAST_SIGNAL_TIMEOUT', `no signal ${signal} came in time`);
  }
}

/** The program asks for other steps than those on record. */
export class ProgramChangedError extends HoldfastError {
  /** The path on record that the program does not ask for. */
  declare readonly step: string;

  constructor(program: string, step: string, what: string) {
    super('HOLDFAST_PROGRAM_CHANGED', `${program}: ${what}`);
    this.step = step;
  }
}

/** The assembly has stopped before its end, and has compensated what was done. */
export class AssemblyStoppedError extends HoldfastError {
  declare readonly id: string;
  declare readonly stop: StopNote;

  constructor(id: string, stop: StopNote) {
    super('HOLDFAST_ASSEMBLY_STOPPED', `assembly ${id} was stopped (${stop.because}): ${stop.message}`);
    this.id = id;
    this.stop = stop;
  }
}

/** The id was used before, for another program or input. */
export class MismatchError extends HoldfastError {
  constructor(id: string) {
    super('HOLDFAST_ASSEMBLY_MISMATCH', `assembly ${id} was started before with another program or input`);
  }
}

/** No assembly has this id: it was never started, or its record has been removed since. */
export class UnknownAssemblyError extends HoldfastError {
  constructor(id: string) {
    super('HOLDFAST_ASSEMBLY_UNKNOWN', `there is no assembly ${id}`);
  }
}

/** What was asked for is not possible in the state of the assembly. */
export class AssemblyStateError extends HoldfastError {
  constructor(id: string, message: string) {
    super('HOLDFAST_ASSEMBLY_STATE', `assembly ${id} ${message}`);
  }
}

/** The reason of the signal of a step: the work is cancelled, out of time, or has passed to another worker. */
export class StepAbortedError extends HoldfastError {
  constructor(because: string) {
    super('HOLDFAST_STEP_ABORTED', `the step was aborted: ${because}`);
  }
}

import type {
  NewAssembly,
  Payload,
  ProgressEntry,
  ProgressResult,
  SizeLimits,
  StepKind,
  StepRecord,
  StopNote,
  StoredSignal,
  StoredStep,
} from '@holdfast/contracts';
import type { Clock, Policy, Random } from 'holdfast';
import type { ProgramChangedError } from './assembly-errors.ts';
import type { Check } from './check.ts';
import type { StepContext, Undo } from './step.ts';

/** A step that the program asks for. */
export interface StepRequest {
  readonly kind: StepKind;
  readonly fn?: ((context: StepContext) => unknown) | undefined;
  readonly transaction?: ((tx: unknown, context: StepContext) => unknown) | undefined;
  readonly policy?: Policy | undefined;
  readonly check?: Check<never> | undefined;
  readonly timeoutMs?: number | undefined;
  readonly once?: boolean | undefined;
  readonly whenUnknown?: ((context: StepContext) => unknown) | undefined;
  readonly pivot?: boolean | undefined;
  readonly undo?: Undo<never> | undefined;
  readonly undoPolicy?: unknown;
  /** For `sleep`: how long, given the store's time. For `wait`: the longest wait. */
  readonly dueInMs?: ((storeNow: number) => number) | undefined;
  /** For `wait`: the name of the signal. */
  readonly signal?: string | undefined;
  /** For `child`: the assembly to start. Its id is derived from the path of the step, so that it is started once. */
  readonly start?: ((id: string, patienceLeftMs: number) => NewAssembly) | undefined;
  /** For `child`: turns the payload of the signal into a result, or throws. */
  readonly read?: ((payload: Payload | undefined) => unknown) | undefined;
  readonly because?: string | undefined;
}

export type ProgramOutcome =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: unknown };

/** What a run needs from the execution around it. */
export interface RunPort {
  readonly id: string;
  /** The name and version of the program, for sentences. */
  readonly program: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly worker: string;
  readonly limits: SizeLimits;
  readonly holdMs: number;
  readonly quietMs: number;
  readonly graceMs: number;
  readonly acceptedAt: number;
  /** On the scale of `Clock.now`; Infinity without a limit. */
  patienceEndsAt(): number;
  /** The store's time as far as it is known, epoch ms. */
  storeNow(): number;
  /** The last `order` that was given to a record. */
  nextOrder(): number;
  signals(): readonly StoredSignal[];
  /** Reads what has come from outside. */
  refresh(): Promise<void>;
  /** True: nothing new begins, and the lease is given back as soon as nothing is under way. */
  isDraining(): boolean;
  record(entry: Omit<ProgressEntry, 'kind' | 'lease'>): Promise<ProgressResult>;
  /** What is written with the end of the program. */
  endEntry(outcome: ProgramOutcome): Omit<ProgressEntry, 'kind' | 'lease' | 'steps'>;
  suspendEntry(dueInMs: number | undefined): Omit<ProgressEntry, 'kind' | 'lease' | 'steps'>;
  /** More to be written with a record, such as notices. */
  withRecords(steps: readonly StepRecord[]): readonly NewAssembly[];
  /** The run is over: it has ended, lies down, was stopped, or has lost its lease. */
  over(how: RunEnd): void;
}

export type RunEnd =
  | { readonly kind: 'ended' }
  | { readonly kind: 'suspended' }
  | { readonly kind: 'returned' }
  | { readonly kind: 'stopped'; readonly stop: StopNote }
  | { readonly kind: 'collected'; readonly steps: readonly Underway[] }
  | { readonly kind: 'changed'; readonly error: ProgramChangedError }
  | { readonly kind: 'lost' };

/** The signal with which a child tells its parent of its end. */
export function childSignal(path: string): string {
  return `~child/${path}`;
}

/** A step that the program has asked for in this run. */
export interface Underway {
  readonly path: string;
  readonly request: StepRequest;
  /** What was on record when the program asked for it. */
  readonly record: StoredStep | undefined;
}

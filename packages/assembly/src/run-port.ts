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

/** What the program asks for in one step. */
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
  /**
   * For `sleep`: returns its duration in ms. For `wait`: returns its timeout in ms. `storeNow` is the store's
   * time, epoch ms.
   */
  readonly dueInMs?: ((storeNow: number) => number) | undefined;
  readonly signal?: string | undefined;
  /**
   * For `child`: builds the assembly to start. The id of that assembly contains the path of the step, so it
   * is started only once.
   */
  readonly start?: ((id: string, patienceLeftMs: number) => NewAssembly) | undefined;
  /** For `child`: reads the result from the child's last signal. Throws if the child was stopped. */
  readonly read?: ((payload: Payload | undefined) => unknown) | undefined;
  readonly because?: string | undefined;
}

export type ProgramOutcome =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: unknown };

/** What `ProgramRun` needs from the `Execution` that owns it. */
export interface RunPort {
  readonly id: string;
  /** The name and version of the program, for error messages. */
  readonly program: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly worker: string;
  readonly limits: SizeLimits;
  readonly holdMs: number;
  readonly quietMs: number;
  readonly graceMs: number;
  readonly acceptedAt: number;
  /** When the customer's patience ends, on the scale of `Clock.now`; Infinity if there is no limit. */
  patienceEndsAt(): number;
  /** An estimate of the store's time, epoch ms. */
  storeNow(): number;
  nextOrder(): number;
  signals(): readonly StoredSignal[];
  /** Reads new signals, requests to stop and a changed patience from the store. */
  refresh(): Promise<void>;
  /** True: no step may begin, and the lease is released when all running steps have settled. */
  isDraining(): boolean;
  record(entry: Omit<ProgressEntry, 'kind' | 'lease'>): Promise<ProgressResult>;
  /** Returns what is written, beside the steps, when the program ends. */
  endEntry(outcome: ProgramOutcome): Omit<ProgressEntry, 'kind' | 'lease' | 'steps'>;
  suspendEntry(dueInMs: number | undefined): Omit<ProgressEntry, 'kind' | 'lease' | 'steps'>;
  /** More assemblies to start together with these records, such as webhook notices. */
  withRecords(steps: readonly StepRecord[]): readonly NewAssembly[];
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

/** The name of the signal that a child sends to its parent when the child ends. */
export function childSignal(path: string): string {
  return `~child/${path}`;
}

/** A step that the program has asked for in this run. */
export interface Underway {
  readonly path: string;
  readonly request: StepRequest;
  /** The stored record of the step at the time when the program asked for it. */
  readonly record: StoredStep | undefined;
}

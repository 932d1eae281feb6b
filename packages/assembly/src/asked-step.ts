import type { AttemptRecord, StoredStep } from '@holdfast/contracts';
import type { Timer } from 'holdfast';
import type { Scope } from './program-scope.ts';
import { childSignal, type StepRequest, type Underway } from './run-port.ts';
import type { StepContext } from './step.ts';

/** A step that the program has asked for, and whose promise is still pending. */
export class AskedStep implements Underway {
  readonly path: string;
  readonly name: string;
  readonly scope: Scope;
  readonly request: StepRequest;
  readonly record: StoredStep | undefined;
  /** Set while the step waits for a time: a sleep, a backoff, or the timeout of a wait for a signal. */
  timer: Timer | undefined;
  readonly signal: string | undefined;
  resolve!: (value: unknown) => void;
  reject!: (error: unknown) => void;
  state: 'new' | 'held' | 'active' | 'waiting' | 'completed' = 'new';
  attempts: number;
  story: readonly AttemptRecord[];
  previousDelayMs = 0;
  /** When the step can continue, on the scale of `Clock.now`. Infinity: only a signal continues it. */
  readyAt = Infinity;
  /** Created when the step function first reads `context.signal`. */
  controller: AbortController | undefined;
  aborted: { readonly reason: unknown } | undefined;
  /** What the last attempt threw in this process. The store keeps only a note of it. */
  error: unknown;

  constructor(
    path: string,
    name: string,
    scope: Scope,
    request: StepRequest,
    record: StoredStep | undefined,
  ) {
    this.path = path;
    this.name = name;
    this.scope = scope;
    this.request = request;
    this.record = record;
    this.signal = request.kind === 'child' ? childSignal(path) : request.signal;
    this.attempts = record?.attempts ?? 0;
    this.story = record?.story ?? [];
  }

  abort(reason: unknown): void {
    this.aborted ??= { reason };
    this.controller?.abort(reason);
  }
}

/**
 * The argument of a step function. Most functions never read `signal`, so its AbortController is created on
 * the first read.
 */
export class AttemptContext implements StepContext {
  readonly key: string;
  readonly attempt: number;
  readonly patienceLeftMs: number;
  readonly #asked: AskedStep;

  constructor(asked: AskedStep, key: string, patienceLeftMs: number) {
    this.#asked = asked;
    this.key = key;
    this.attempt = asked.attempts;
    this.patienceLeftMs = patienceLeftMs;
    asked.controller = undefined;
    asked.aborted = undefined;
  }

  get signal(): AbortSignal {
    const asked = this.#asked;
    if (!asked.controller) {
      asked.controller = new AbortController();
      if (asked.aborted) asked.controller.abort(asked.aborted.reason);
    }
    return asked.controller.signal;
  }
}

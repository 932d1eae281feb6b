import type { AttemptRecord, StoredStep } from '@holdfast/contracts';
import type { Timer } from 'holdfast';
import type { Scope } from './program-scope.ts';
import { childSignal, type StepRequest, type Underway } from './run-port.ts';
import type { StepContext } from './step.ts';

/** A step that the program has asked for, and that has not answered yet. */
export class AskedStep implements Underway {
  readonly path: string;
  readonly name: string;
  readonly scope: Scope;
  readonly request: StepRequest;
  readonly record: StoredStep | undefined;
  /** Set while it waits for a time. */
  timer: Timer | undefined;
  /** The signal that completes it. */
  readonly signal: string | undefined;
  resolve!: (value: unknown) => void;
  reject!: (error: unknown) => void;
  state: 'new' | 'held' | 'active' | 'waiting' | 'completed' = 'new';
  attempts: number;
  story: readonly AttemptRecord[];
  previousDelayMs = 0;
  /** When it goes on, on the scale of `Clock.now`; Infinity: by a signal only. */
  readyAt = Infinity;
  /** Made when the signal is first read. */
  controller: AbortController | undefined;
  /** Why its signal aborts; `undefined`: it does not. */
  aborted: { readonly reason: unknown } | undefined;
  /** The real error of the last attempt. */
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

/** What the function of a step is given. Most functions do not read `signal`, so that it is made when they do. */
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

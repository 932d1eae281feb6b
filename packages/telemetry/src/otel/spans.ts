import {
  type Attributes,
  type Context,
  context,
  type HrTime,
  type Span,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import type { Around, Clock, Notice, Sent } from 'holdfast';
import { errorType } from '../error-type.ts';
import { outcomeOf } from '../measure.ts';

/**
 * Creates spans from notices (events that policies report): one span for each call and one for each attempt.
 */
export interface Spans {
  hear(notice: Notice): void;
  /**
   * Runs the code of an attempt inside of the attempt's span. Spans that this code creates become children of
   * that span.
   */
  readonly around: Around;
  stop(): void;
}

type OfWork = Extract<Notice, { readonly work: number }>;

export function spans(tracer: Tracer, clock: Clock, operationsMax: number): Spans {
  const open = new Map<number, OperationSpan>();
  /** The number of running calls that have no span, because `operationsMax` calls have one already. */
  let passedOver = 0;

  function begin(notice: OfWork, startedAt: number): OperationSpan {
    const operation = new OperationSpan(tracer, clock, notice, startedAt);
    open.set(notice.work, operation);
    return operation;
  }

  return {
    hear(notice) {
      // In mode `observe`, only the real call gets spans. Actions that the policy would have taken did not
      // happen, so they have no duration.
      if (!('work' in notice) || notice.observed) return;
      if (notice.type === 'start') {
        if (open.size < operationsMax) begin(notice, notice.at);
        else passedOver++;
        return;
      }
      const isEnd = notice.type === 'done' || notice.type === 'gave_up';
      const known = open.get(notice.work);
      if (!known && passedOver > 0) {
        if (isEnd) passedOver--;
        return;
      }
      // A call has no `start` notice if it began before the subscription or was refused immediately.
      const operation = known ?? ('tookMs' in notice ? begin(notice, notice.at - notice.tookMs) : undefined);
      operation?.hear(notice);
      if (isEnd) open.delete(notice.work);
    },
    around(sent, call) {
      const operation = open.get(sent.work);
      return operation ? operation.attempt(sent, call) : call();
    },
    stop() {
      for (const operation of open.values()) operation.end(clock.now());
      open.clear();
    },
  };
}

class OperationSpan {
  readonly #tracer: Tracer;
  readonly #span: Span;
  readonly #inside: Context;
  readonly #policy: string | undefined;
  readonly #epochOffsetMs: number;
  /** When each pending attempt was sent, if a notice has reported it. */
  readonly #sentAt = new Map<number, number>();
  readonly #begun = new Map<number, Span>();
  #attempts: number;
  /**
   * The attempt that ended last. Its span stays open until it is known whether another attempt follows
   * (`retry.last`).
   */
  #held: HeldAttempt | undefined = undefined;

  constructor(tracer: Tracer, clock: Clock, notice: OfWork, startedAt: number) {
    const { policy, target } = notice;
    this.#tracer = tracer;
    this.#policy = policy;
    // Read the offset only once. So all spans of a call fit together, even if the system clock is changed.
    this.#epochOffsetMs = clock.epochMs() - clock.now();
    const around = context.active();
    this.#span = tracer.startSpan(
      policy === undefined ? 'holdfast operation' : `holdfast ${policy}`,
      { startTime: this.#time(startedAt), attributes: { ...named(policy, target) } },
      around,
    );
    this.#inside = trace.setSpan(around, this.#span);
    if (notice.type === 'start') this.#sentAt.set(1, startedAt);
    this.#attempts = 'attempt' in notice ? notice.attempt : 1;
  }

  hear(notice: OfWork): void {
    switch (notice.type) {
      case 'attempt':
        this.#attempted(notice);
        return;
      case 'retry':
        if (this.#held) this.#held.attributes['retry.delay'] = notice.delayMs / 1000;
        this.#sentAt.set(++this.#attempts, notice.at + notice.delayMs);
        return;
      case 'hedge':
        this.#attempts = notice.attempt;
        this.#sentAt.set(notice.attempt, notice.at);
        this.#span.addEvent('hedge', { 'retry.attempt': notice.attempt }, this.#time(notice.at));
        return;
      case 'refused':
        this.#span.addEvent('refused', refusal(notice), this.#time(notice.at));
        return;
      case 'done':
      case 'gave_up':
        this.#ended(notice);
        return;
    }
  }

  attempt<T>({ attempt, at, target }: Sent, call: () => T): T {
    let inside: Context;
    try {
      const span = this.#begin(attempt, at, named(this.#policy, target));
      this.#begun.set(attempt, span);
      inside = trace.setSpan(context.active(), span);
    } catch {
      // OpenTelemetry itself threw an error. Make the call without a span; the span is created when the
      // attempt ends.
      return call();
    }
    return context.with(inside, call);
  }

  end(at: number): void {
    this.#tellHeld(false);
    for (const span of this.#begun.values()) span.end(this.#time(at));
    this.#begun.clear();
    this.#span.end(this.#time(at));
  }

  #attempted(notice: OfWork & { type: 'attempt' }): void {
    const { attempt, at, tookMs, class: judged, last, target, outcome } = notice;
    this.#tellHeld(false);
    this.#sentAt.delete(attempt);
    this.#held = {
      attempt,
      startedAt: at - tookMs,
      endedAt: at,
      attributes: {
        ...named(this.#policy, target),
        'holdfast.class': judged,
        ...(judged !== 'ok' && { 'error.type': errorType(outcome) }),
      },
    };
    if (last) this.#tellHeld(true);
  }

  #ended(notice: OfWork & { type: 'done' | 'gave_up' }): void {
    const { attempts, at, target, type } = notice;
    // The end of these attempts was not reported: the call was cancelled, or another attempt was faster.
    const abandoned = [...this.#sentAt].filter(([attempt]) => attempt <= attempts);
    const isCutShort = type === 'gave_up' && abandoned.length > 0;
    this.#tellHeld(!isCutShort);
    for (const [attempt, startedAt] of abandoned) {
      const attributes = { ...named(this.#policy, target), 'holdfast.class': 'abandoned' };
      const isLast = isCutShort && attempt === abandoned.at(-1)![0];
      this.#tell({ attempt, startedAt: Math.min(startedAt, at), endedAt: at, attributes }, isLast);
    }
    this.#span.setAttributes({
      'holdfast.attempts': attempts,
      'holdfast.outcome': outcomeOf(type, attempts),
    });
    if (type === 'gave_up') {
      const { because, outcome: given } = notice;
      this.#span.setAttribute('holdfast.reason', because);
      this.#span.setAttribute('error.type', given === undefined ? because : errorType(given));
      // A cancelled call is not an error, so its span gets no error status.
      if (because !== 'cancelled') this.#span.setStatus({ code: SpanStatusCode.ERROR });
    }
    this.#span.end(this.#time(at));
  }

  #tellHeld(isLast: boolean): void {
    const held = this.#held;
    this.#held = undefined;
    if (held) this.#tell(held, isLast);
  }

  #tell({ attempt, startedAt, endedAt, attributes }: HeldAttempt, isLast: boolean): void {
    const span = this.#begun.get(attempt) ?? this.#begin(attempt, startedAt, {});
    this.#begun.delete(attempt);
    span.setAttributes({ ...attributes, 'retry.last': isLast });
    if ('error.type' in attributes) span.setStatus({ code: SpanStatusCode.ERROR });
    span.end(this.#time(endedAt));
  }

  #begin(attempt: number, at: number, attributes: Attributes): Span {
    const told = {
      ...attributes,
      'retry.attempt': attempt,
      ...(attempt > 1 && { 'http.request.resend_count': attempt - 1 }),
    };
    const startTime = this.#time(at);
    return this.#tracer.startSpan(`attempt ${attempt}`, { startTime, attributes: told }, this.#inside);
  }

  /**
   * Converts a time to seconds and nanoseconds. OpenTelemetry could read a single number as the time since
   * the start of the process.
   */
  #time(at: number): HrTime {
    const microseconds = Math.round((at + this.#epochOffsetMs) * 1000);
    const seconds = Math.floor(microseconds / 1e6);
    return [seconds, (microseconds - seconds * 1e6) * 1000];
  }
}

interface HeldAttempt {
  readonly attempt: number;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly attributes: Attributes;
}

function named(policy: string | undefined, target: string | undefined): Attributes {
  return {
    ...(policy !== undefined && { 'holdfast.policy': policy }),
    ...(target !== undefined && { 'holdfast.target': target }),
  };
}

function refusal({ target, because }: OfWork & { type: 'refused' }): Attributes {
  return { ...named(undefined, target), 'holdfast.reason': because };
}

import { type Meter, metrics, type Tracer, trace } from '@opentelemetry/api';
import { type Clock, OptionsError, subscribe, systemClock } from 'holdfast';
import { assertKnownFields } from 'holdfast/fields';
import { checkedMax, defaultLabelSetsMax } from '../observe.ts';
import { type Policies, selectionOf } from '../selection.ts';
import { instruments } from './instruments.ts';
import { spans } from './spans.ts';

/** The options of `observeWithOpenTelemetry`. */
export interface OpenTelemetryOptions {
  /** The policies to report: some, or all. Default: all. */
  readonly policies?: Policies | undefined;
  /** The meter of the metrics; false disables them. Default: the meter of the global provider. */
  readonly meter?: Meter | false | undefined;
  /** The tracer of the spans; false disables them. Default: the tracer of the global provider. */
  readonly tracer?: Tracer | false | undefined;
  /**
   * The most label sets (combinations of label values) of each metric. Further label sets are counted as `other`.
   * Default: `500`.
   */
  readonly labelSetsMax?: number | undefined;
  /** The most calls that have spans at the same time. Further calls get no spans. Default: `10000`. */
  readonly operationsMax?: number | undefined;
  /** The clock of the policies. It is used to convert their times to dates. Default: the system's. */
  readonly clock?: Clock | undefined;
}

const known: Readonly<Record<keyof OpenTelemetryOptions, true>> = {
  policies: true,
  meter: true,
  tracer: true,
  labelSetsMax: true,
  operationsMax: true,
  clock: true,
};

/**
 * Reports the work of policies to OpenTelemetry, as metrics and spans. Returns a function that stops the
 * reports.
 */
export function observeWithOpenTelemetry(options: OpenTelemetryOptions = {}): () => void {
  assertKnownFields(known, options);
  const { clock = systemClock, operationsMax = 10_000 } = options;
  const labelSetsMax = checkedMax(options.labelSetsMax ?? defaultLabelSetsMax);
  if (!Number.isInteger(operationsMax) || operationsMax < 1) {
    throw new OptionsError('operationsMax', operationsMax, 'a whole number from 1');
  }
  const selection = selectionOf(options.policies ?? 'all');
  const meter = options.meter ?? metrics.getMeter(SCOPE);
  const tracer = options.tracer ?? trace.getTracer(SCOPE);
  const measured = meter ? instruments(meter, selection, labelSetsMax) : undefined;
  const traced = tracer ? spans(tracer, clock, operationsMax) : undefined;
  const unsubscribe = subscribe((notice) => {
    if (!selection(notice.policy)) return;
    measured?.measure(notice);
    traced?.hear(notice);
  }, traced?.around);
  return () => {
    unsubscribe();
    measured?.stop();
    traced?.stop();
  };
}

const SCOPE = '@holdfast/telemetry';

import type { Attributes, BatchObservableResult, Meter, Observable } from '@opentelemetry/api';
import type { Notice } from 'holdfast';
import { LabelSets } from '../label-sets.ts';
import { measuring } from '../measure.ts';
import {
  defaultBucketsSeconds,
  type Labels,
  type Metric,
  type MetricKey,
  metricKeys,
  metrics,
} from '../metrics.ts';
import { readings } from '../readings.ts';
import type { Selection } from '../selection.ts';

/**
 * Records the notices (events) of policies in the instruments of a meter. Gauges are read only when the meter
 * collects them.
 */
export interface Instruments {
  measure(notice: Notice): void;
  stop(): void;
}

type Instrument = (value: number, attributes: Attributes) => void;

export function instruments(meter: Meter, selection: Selection, labelSetsMax: number): Instruments {
  const taking = new Map<MetricKey, { sets: LabelSets<Attributes>; take: Instrument }>();
  const gauges = new Map<MetricKey, Observable>();
  for (const key of metricKeys) {
    const metric: Metric = metrics[key];
    const options = { description: metric.help, unit: isInSeconds(metric) ? 's' : '' };
    const name = instrumentName(metric);
    if (metric.type === 'gauge') gauges.set(key, meter.createObservableGauge(name, options));
    else
      taking.set(key, {
        sets: new LabelSets(metric, labelSetsMax, attributesOf),
        take: instrumentOf(meter, metric, name, options),
      });
  }

  const measure = measuring((metric, labels, value) => {
    const { sets, take } = taking.get(metric)!;
    const set = sets.place(labels);
    take(value, set.kept);
    if (set.overflowed) taking.get('labelOverflows')!.take(1, { metric: metrics[metric].name });
  });

  /**
   * Reads all gauges. Values with the same labels are added up first, because OpenTelemetry keeps only the
   * last value that is observed.
   */
  function read(result: BatchObservableResult): void {
    const places = new Map(
      [...gauges.keys()].map((key) => [key, new LabelSets(metrics[key], labelSetsMax, () => ({ sum: 0 }))]),
    );
    for (const { metric, labels, value } of readings(selection)) {
      places.get(metric)!.place(labels).kept.sum += value;
    }
    for (const [key, sets] of places) {
      for (const { labels, kept } of sets.inOrder()) {
        result.observe(gauges.get(key)!, kept.sum, attributesOf(labels));
      }
    }
  }

  const observed = [...gauges.values()];
  meter.addBatchObservableCallback(read, observed);
  return { measure, stop: () => meter.removeBatchObservableCallback(read, observed) };
}

/**
 * Returns the name of a metric without its unit and without `_total`, because Prometheus exporters add both.
 */
function instrumentName({ name }: Metric): string {
  return name.replace(/^holdfast_/, 'holdfast.').replace(/_(total|seconds)$/, '');
}

function isInSeconds({ name }: Metric): boolean {
  return name.endsWith('_seconds');
}

function instrumentOf(
  meter: Meter,
  metric: Metric,
  name: string,
  options: { description: string; unit: string },
): Instrument {
  if (metric.type === 'counter') {
    const counter = meter.createCounter(name, options);
    return (value, attributes) => counter.add(value, attributes);
  }
  const advice = { explicitBucketBoundaries: [...defaultBucketsSeconds] };
  const histogram = meter.createHistogram(name, { ...options, advice });
  return (value, attributes) => histogram.record(value, attributes);
}

function attributesOf({ error_type, ...labels }: Labels): Attributes {
  return error_type === undefined ? labels : { ...labels, 'error.type': error_type };
}

import { context, type HrTime, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { build } from 'esbuild';
import type { PolicySpec } from 'holdfast';
import { after, heeding } from 'holdfast/testing';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { metrics, observe } from '../src/index.ts';
import { type OpenTelemetryOptions, observeWithOpenTelemetry } from '../src/otel/index.ts';
import { down, ended, gone, setup } from './storm.ts';

const contexts = new AsyncLocalStorageContextManager();
beforeAll(() => void context.setGlobalContextManager(contexts.enable()));
afterAll(() => context.disable());

/** One policy, told to the real SDK. */
function tracing(spec: PolicySpec = {}, options: OpenTelemetryOptions = {}) {
  const made = setup(spec);
  const exporter = new InMemorySpanExporter();
  const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] });
  const tracer = provider.getTracer('test');
  const stop = observeWithOpenTelemetry({
    policies: [made.policy],
    clock: made.clock,
    tracer,
    meter: false,
    ...options,
  });
  onTestFinished(stop);
  const finished = () => exporter.getFinishedSpans();
  const operations = () => finished().filter(({ name }) => name.startsWith('holdfast'));
  const attempts = () =>
    finished()
      .filter(({ name }) => name.startsWith('attempt'))
      .sort((a, b) => Number(a.attributes['retry.attempt']) - Number(b.attributes['retry.attempt']));
  return { ...made, tracer, stop, finished, operations, attempts };
}

const startOf2026 = Date.UTC(2026, 0, 1);
/** On the scale of the virtual clock. */
const at = ([seconds, nanos]: HrTime) => seconds * 1000 + nanos / 1e6 - startOf2026;
const times = (span: ReadableSpan) => [at(span.startTime), at(span.endTime)];
const parent = (span: ReadableSpan | undefined) => span?.parentSpanContext?.spanId;

describe('spans', () => {
  test('of a policy that only observes are those of the real call', async () => {
    const { policy, call, clock, operations, attempts } = tracing({ mode: 'observe', attempts: 3 });
    await ended(clock, policy.try(call(after('30ms', down))));
    expect(operations().map(({ attributes }) => attributes)).toMatchObject([
      { 'holdfast.attempts': 1, 'holdfast.outcome': 'failed', 'holdfast.reason': 'observed' },
    ]);
    expect(attempts().map(times)).toEqual([[0, 30]]);
  });

  test('are one for the operation and one for each attempt under it, with the times they had', async () => {
    const { policy, call, clock, operations, attempts, name } = tracing();
    await ended(clock, policy.run(call(after('30ms', down), after('50ms', 'fine')), { target: 'eu' }));
    const [operation] = operations();
    expect(operation!.name).toBe(`holdfast ${name}`);
    expect(times(operation!)).toEqual([0, 180]);
    expect(operation!.attributes).toEqual({
      'holdfast.policy': name,
      'holdfast.target': 'eu',
      'holdfast.attempts': 2,
      'holdfast.outcome': 'succeeded_after_retry',
    });
    expect(operation!.status.code).toBe(SpanStatusCode.UNSET);

    const [first, second] = attempts();
    const id = operation!.spanContext().spanId;
    expect([parent(first), parent(second)]).toEqual([id, id]);
    expect(times(first!)).toEqual([0, 30]);
    expect(first!.attributes).toEqual({
      'holdfast.policy': name,
      'holdfast.target': 'eu',
      'holdfast.class': 'transient',
      'error.type': 'ECONNRESET',
      'retry.attempt': 1,
      'retry.last': false,
      'retry.delay': 0.1,
    });
    expect(first!.status).toEqual({ code: SpanStatusCode.ERROR });
    expect(times(second!)).toEqual([130, 180]);
    expect(second!.attributes).toMatchObject({
      'holdfast.class': 'ok',
      'retry.attempt': 2,
      'retry.last': true,
      'http.request.resend_count': 1,
    });
    expect(second!.attributes).not.toHaveProperty('error.type');
  });

  test('belong to whatever was active when the work began, however much runs at once', async () => {
    const { policy, call, clock, tracer, operations, finished } = tracing();
    const callers = ['one', 'other'].map((name) => tracer.startSpan(name));
    const running = callers.map((span) =>
      context.with(trace.setSpan(context.active(), span), () => policy.run(call(after('1s', down), 'fine'))),
    );
    await ended(clock, Promise.all(running));
    for (const span of callers) span.end();
    expect(operations().map(parent).sort()).toEqual(callers.map((span) => span.spanContext().spanId).sort());
    const traces = new Set(finished().map((span) => span.spanContext().traceId));
    expect(traces.size).toBe(2);
    expect(finished()).toHaveLength(2 + 2 + 4);
  });

  test('of attempts are active in their calls, and in those alone', async () => {
    const { policy, clock, tracer, attempts, finished } = tracing();
    let calls = 0;
    const operation = async () => {
      tracer.startSpan(`inside ${++calls}`).end();
      if (calls < 3) throw down;
      await Promise.resolve();
      tracer.startSpan('inside 3, later').end();
    };
    const caller = tracer.startSpan('caller');
    await context.with(trace.setSpan(context.active(), caller), async () => {
      await ended(clock, policy.run(operation));
      tracer.startSpan('after').end();
    });
    const parentOf = (name: string) => parent(finished().find((span) => span.name === name));
    const ids = attempts().map((span) => span.spanContext().spanId);
    expect(['inside 1', 'inside 2', 'inside 3', 'inside 3, later'].map(parentOf)).toEqual([...ids, ids[2]]);
    expect(parentOf('after')).toBe(caller.spanContext().spanId);
  });

  test('that cannot be made when a call begins do not keep it from being made, once', async () => {
    const exporter = new InMemorySpanExporter();
    const processor = new SimpleSpanProcessor({ exporter });
    let failures = 0;
    processor.onStart = ({ name }) => {
      if (name.startsWith('attempt') && ++failures === 1) throw new Error('the processor is broken');
    };
    const provider = new TracerProvider({ spanProcessors: [processor] });
    const { policy, call, clock } = tracing({}, { tracer: provider.getTracer('test') });
    const operation = vi.fn(call(after('30ms', 'fine')));
    await ended(clock, expect(policy.run(operation)).resolves.toBe('fine'));
    expect(operation).toHaveBeenCalledOnce();
    expect(exporter.getFinishedSpans()).toHaveLength(2);
  });

  test('tell why work was given up, and never in the words of an error', async () => {
    const { policy, call, finished, operations } = tracing({ attempts: 1 });
    await policy.try(call(down));
    expect(operations()[0]!.status).toEqual({ code: SpanStatusCode.ERROR });
    expect(operations()[0]!.attributes).toMatchObject({
      'holdfast.outcome': 'failed',
      'holdfast.reason': 'attempts_exhausted',
      'error.type': 'ECONNRESET',
    });
    const all = finished().map(({ name, attributes, events, status }) => ({
      name,
      attributes,
      events,
      status,
    }));
    expect(JSON.stringify(all)).not.toContain('hunter2');
  });

  test('mark the attempt after which nothing follows, also when a planned retry came to nothing', async () => {
    const { policy, call, clock, attempts } = tracing({
      breaker: { consecutive: 2, openFor: '1m' },
      attempts: 3,
    });
    const waiting = policy.try(call(down, 'never'));
    await policy.try(call(down));
    await ended(clock, waiting);
    const last = attempts().map((span) => span.attributes['retry.last']);
    expect(last).toEqual([true, true]);
  });

  test('show an attempt that the caller left', async () => {
    const { policy, call, clock, attempts, operations } = tracing();
    const caller = new AbortController();
    const running = policy.try(call(after('50ms', down), heeding('hang')), { signal: caller.signal });
    await clock.advance('1s');
    caller.abort();
    await running;
    expect(
      attempts().map((span) => [span.attributes['holdfast.class'], span.attributes['retry.last']]),
    ).toEqual([
      ['transient', false],
      ['abandoned', true],
    ]);
    expect(times(attempts()[1]!)).toEqual([150, 1000]);
    expect(operations()[0]!.status.code).toBe(SpanStatusCode.UNSET);
    expect(operations()[0]!.attributes['holdfast.reason']).toBe('cancelled');
  });

  test('mark the last attempt when the caller leaves during a wait', async () => {
    const { policy, call, clock, attempts } = tracing({
      backoff: { base: '1h', cap: '1h', jitter: 'none' },
      patience: '1d',
    });
    const caller = new AbortController();
    const running = policy.try(call(down), { signal: caller.signal });
    await clock.advance('1s');
    caller.abort();
    await running;
    expect(attempts().map((span) => span.attributes['retry.last'])).toEqual([true]);
  });

  test('show both attempts of a race, and mark the one that ended it', async () => {
    const { policy, call, clock, attempts } = tracing({ hedge: { after: '100ms', extraLoad: 1 } });
    for (let n = 0; n < 20; n++) await policy.run(call('fine'));
    const before = attempts().length;
    const begun = clock.now();
    await ended(clock, policy.run(call(after('5s', 'slow'), after('20ms', 'quick'))));
    const raced = attempts()
      .slice(0, before + 2)
      .filter((span) => at(span.endTime) > begun);
    expect(raced.map(({ attributes }) => [attributes['holdfast.class'], attributes['retry.last']])).toEqual([
      ['abandoned', false],
      ['ok', true],
    ]);
    expect(raced.map((span) => times(span).map((each) => each - begun))).toEqual([
      [0, 120],
      [100, 120],
    ]);
  });

  test('of refused work have no attempt, and say who refused', async () => {
    const { policy, call, operations, attempts } = tracing({ breaker: { consecutive: 1 }, attempts: 1 });
    await policy.try(call(down));
    await policy.try(call('never'));
    const refused = operations()[1]!;
    expect(attempts()).toHaveLength(1);
    expect(refused.events).toMatchObject([
      { name: 'refused', attributes: { 'holdfast.reason': 'breaker_open' } },
    ]);
    expect(refused.attributes).toMatchObject({ 'holdfast.attempts': 0, 'error.type': 'breaker_open' });
  });

  test('exist for work that was under way before anybody listened', async () => {
    const { clock, policy, call } = setup();
    const running = policy.run(call(after('40ms', down), 'fine'));
    await clock.advance('10ms');
    const exporter = new InMemorySpanExporter();
    const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] });
    onTestFinished(
      observeWithOpenTelemetry({ policies: [policy], clock, tracer: provider.getTracer('t'), meter: false }),
    );
    await ended(clock, running);
    expect(exporter.getFinishedSpans().map(({ name }) => name.split(' ')[0])).toEqual([
      'attempt',
      'attempt',
      'holdfast',
    ]);
  });

  test('that are open when observation ends are ended', async () => {
    const { policy, call, clock, stop, operations, attempts } = tracing();
    const running = policy.run(call(down, after('1s', 'fine')));
    await clock.advance('500ms');
    stop();
    expect(operations().map(times)).toEqual([[0, 500]]);
    expect(attempts().map((span) => at(span.endTime))).toContain(500);
    expect(attempts()).toHaveLength(2);
    await ended(clock, running);
    expect(operations()).toHaveLength(1);
  });

  test('are made for so many operations at a time', async () => {
    const { policy, call, clock, operations } = tracing({}, { operationsMax: 2 });
    await ended(clock, Promise.all([1, 2, 3].map(() => policy.run(call(after('1s', 'fine'))))));
    expect(operations()).toHaveLength(2);
    await ended(clock, policy.run(call('fine')));
    expect(operations()).toHaveLength(3);
  });
});

describe('metrics', () => {
  /** One policy, told to the real SDK, and beside it what `observe` keeps. */
  function metering(spec: PolicySpec = {}) {
    const made = setup(spec);
    const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
    const reader = new PeriodicExportingMetricReader({
      exporter,
      exportIntervalMillis: 1e6,
      exportTimeoutMillis: 1e5,
    });
    const provider = new MeterProvider({ readers: [reader] });
    onTestFinished(() => provider.shutdown());
    const stop = observeWithOpenTelemetry({
      policies: [made.policy],
      meter: provider.getMeter('test'),
      tracer: false,
    });
    const observed = observe([made.policy]);
    onTestFinished(() => {
      stop();
      observed.stop();
    });
    async function exported() {
      await provider.forceFlush();
      return exporter.getMetrics().at(-1)?.scopeMetrics[0]?.metrics ?? [];
    }
    return { ...made, observed, exported, stop };
  }

  /** What an exporter to Prometheus makes of the name of an instrument. */
  function prometheusName({ name, unit }: { name: string; unit: string }, isCounter: boolean): string {
    return `${name.replaceAll('.', '_')}${unit === 's' ? '_seconds' : ''}${isCounter ? '_total' : ''}`;
  }

  test('are the same by both roads, with the same names, labels and values', async () => {
    const { policy, call, clock, observed, exported } = metering({
      attempts: 2,
      breaker: { consecutive: 3 },
      budget: { ratio: 0.5 },
      bulkhead: { concurrent: 5 },
    });
    await ended(clock, policy.try(call(after('20ms', down), 'fine'), { target: 'eu' }));
    await policy.try(call(gone), { target: 'us' });
    for (let n = 0; n < 3; n++) await ended(clock, policy.try(call(down), { target: 'us' }));

    const told = new Map<string, unknown>();
    for (const metric of await exported()) {
      const { descriptor, dataPoints } = metric;
      const key = prometheusName(descriptor, 'isMonotonic' in metric && metric.isMonotonic === true);
      for (const { attributes, value } of dataPoints) {
        const { 'error.type': error_type, ...labels } = attributes;
        const figure = typeof value === 'object' ? [value.sum, value.count] : value;
        told.set(`${key} ${ordered({ ...labels, error_type })}`, figure);
      }
    }
    const kept = new Map(
      observed
        .snapshot()
        .flatMap(({ name, samples }) =>
          samples.map(({ labels, value, count }) => [
            `${name} ${ordered(labels)}`,
            count === undefined ? value : [value, count],
          ]),
        ),
    );
    expect(told.size).toBeGreaterThan(20);
    expect(told).toEqual(kept);
  });

  test('in seconds have the unit and the bounds for it', async () => {
    const { policy, call, clock, exported } = metering();
    await ended(clock, policy.run(call(after('300ms', 'fine'))));
    const time = (await exported()).find(({ descriptor }) => descriptor.name === 'holdfast.attempt')!;
    expect(time.descriptor).toMatchObject({ unit: 's', description: metrics.attemptTime.help });
    expect(time.dataPoints[0]!.value).toMatchObject({
      sum: 0.3,
      buckets: { boundaries: expect.arrayContaining([0.25, 0.5]) },
    });
  });

  test('end with stop: nothing is counted or read any more', async () => {
    const { policy, call, exported, stop } = metering({ bulkhead: { concurrent: 5 } });
    await policy.run(call('fine'));
    stop();
    await policy.run(call('fine'));
    const all = await exported();
    const operations = all.find(({ descriptor }) => descriptor.name === 'holdfast.operations');
    expect(operations?.dataPoints.map(({ value }) => value)).toEqual([1]);
    expect(all.map(({ descriptor }) => descriptor.name)).not.toContain('holdfast.in_flight_attempts');
  });
});

test('OpenTelemetry is loaded by its own entry and by no other', async () => {
  const loads = async (entry: string) => {
    const { metafile } = await build({
      stdin: { contents: `export * from '${entry}'`, resolveDir: import.meta.dirname, loader: 'ts' },
      bundle: true,
      write: false,
      metafile: true,
      format: 'esm',
      conditions: ['holdfast-source'],
    });
    return Object.keys(metafile.inputs).some((file) => file.includes('@opentelemetry'));
  };
  expect(await loads('@holdfast/telemetry')).toBe(false);
  expect(await loads('@holdfast/telemetry/otel')).toBe(true);
});

test.each([
  ['operationsMax', { operationsMax: 0 }],
  ['labelSetsMax', { labelSetsMax: 1.5 }],
  ['policy', { policy: 'payment' } as never],
])('says what is wrong with %s', (path, options) => {
  expect(() => observeWithOpenTelemetry(options)).toThrow(
    expect.objectContaining({ code: 'HOLDFAST_OPTIONS', path }),
  );
});

function ordered(labels: object): string {
  return JSON.stringify(
    Object.entries(labels)
      .filter(([, value]) => value !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
}

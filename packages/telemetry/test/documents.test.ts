import { readFile } from 'node:fs/promises';
import { parser } from '@prometheus-io/lezer-promql';
import { http, policy } from 'holdfast';
import { after, scripted, seededRandom, virtualClock } from 'holdfast/testing';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { eventMetrics, type Metric, metrics, observe, serverMetrics } from '../src/index.ts';
import { down, ended } from './storm.ts';

const documents = new URL('../../../docs/', import.meta.url);
const read = (path: string) => readFile(new URL(path, documents), 'utf8');

const table: readonly Metric[] = Object.values(metrics);

/** What samples are called, with the labels that they have. */
const emitted = new Map(
  [...table, ...Object.values<Metric>(eventMetrics), ...Object.values<Metric>(serverMetrics)].flatMap(
    ({ name, type, labels }): [string, readonly string[]][] =>
      type === 'histogram'
        ? [
            [`${name}_bucket`, [...labels, 'le']],
            [`${name}_sum`, labels],
            [`${name}_count`, labels],
          ]
        : [[name, labels]],
  ),
);

/** What is wrong with an expression, asked of Prometheus's own grammar and of the table. */
function complaints(expression: string, recorded: ReadonlySet<string> = new Set()): string[] {
  // Grafana puts a duration there.
  const query = expression.replaceAll('$__rate_interval', '5m');
  const found: string[] = [];
  let metric = '';
  const used = new Set<string>();
  const grouped = new Set<string>();
  parser.parse(query).iterate({
    enter(node) {
      const text = query.slice(node.from, node.to);
      if (node.type.isError) found.push(`cannot be read at ${node.from}: ${query}`);
      if (node.name === 'Identifier') {
        metric = text;
        used.add(metric);
        if (!emitted.has(metric) && !recorded.has(metric)) found.push(`${metric} is not emitted: ${query}`);
      }
      if (node.name !== 'LabelName') return;
      if (node.node.parent?.name === 'GroupingLabels') grouped.add(text);
      else if (!emitted.get(metric)?.includes(text)) found.push(`${metric} has no label ${text}: ${query}`);
    },
  });
  // Prometheus adds the label `job` to each metric.
  grouped.delete('job');
  for (const label of grouped) {
    for (const name of used) {
      if (emitted.has(name) && !emitted.get(name)!.includes(label))
        found.push(`${name} has no label ${label}: ${query}`);
    }
  }
  if (used.size === 0) found.push(`names no metric: ${query}`);
  return found;
}

describe('the table of metrics', () => {
  test('is the one in the document', async () => {
    const written = [
      '| metric | type | labels | |',
      '|---|---|---|---|',
      ...table.map(
        ({ name, type, labels, help }) =>
          `| \`${name}\` | ${type} | ${labels.map((each) => `\`${each}\``).join(', ')} | ${help} |`,
      ),
    ].join('\n');
    const document = await read('telemetry.md');
    expect(/<!-- metrics:.*?-->\n(.*)\n<!-- end of metrics -->/s.exec(document)?.[1]).toBe(written);
  });

  test('has names of one form, and each once', () => {
    for (const { name, type } of table) {
      expect(name).toMatch(/^holdfast_[a-z]+(_[a-z]+)*$/);
      expect(name.endsWith('_total')).toBe(type === 'counter');
      expect(name.endsWith('_seconds')).toBe(type === 'histogram');
    }
    expect(new Set(table.map(({ name }) => name)).size).toBe(table.length);
  });

  test('holds nothing that is never emitted', async () => {
    const observed = observe('all', { labelSetsMax: 4 });
    onTestFinished(() => observed.stop());
    const clock = virtualClock();
    const whole = policy(
      {
        name: 'whole',
        retryOn: ['network', http],
        attempts: 3,
        attemptTimeout: '8s',
        backoff: { jitter: 'none' },
        breaker: { consecutive: 4 },
        bulkhead: { concurrent: 3, queue: 1 },
        hedge: { after: '1s', extraLoad: 1 },
      },
      { clock, random: seededRandom('whole') },
    );
    const call = (...beats: unknown[]) => scripted(clock, ...beats);
    const unreadable = Object.assign(new Error(), { status: 503, headers: { 'retry-after': 'soonish' } });
    for (let n = 0; n < 20; n++) await whole.try(call('fine'), { target: `t${n % 9}` });
    for (let n = 0; n < 20; n++) await whole.try(call('fine'));
    await ended(clock, whole.try(call(down, 'fine')));
    await ended(clock, whole.try(call(unreadable, 'fine')));
    await ended(clock, whole.try(call(after('3s', 'slow'), 'quick')));
    await ended(clock, whole.try(call('hang')));
    for (let n = 0; n < 9; n++) await ended(clock, whole.try(call(down)));
    const careful = policy({ name: 'careful', attempts: 1, fallback: { to: 'instead' } }, { clock });
    await careful.run(call(down));
    const watching = policy({ name: 'watching', mode: 'observe', attempts: 2 }, { clock });
    await ended(clock, watching.try(call(down)));
    const silent = observed.snapshot().filter(({ samples }) => samples.length === 0);
    expect(silent.map(({ name }) => name)).toEqual([]);
  });
});

describe('the dashboard', () => {
  interface Dashboard {
    readonly panels: readonly {
      readonly id: number;
      readonly type: string;
      readonly title: string;
      readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
      readonly targets?: readonly { readonly expr: string; readonly refId: string }[];
    }[];
    readonly annotations: { readonly list: readonly { readonly expr: string }[] };
    readonly templating: {
      readonly list: readonly { readonly name: string; readonly definition?: string }[];
    };
  }
  const dashboard = async (): Promise<Dashboard> =>
    JSON.parse(await read('telemetry/grafana-dashboard.json'));

  test('asks only for what is emitted, in expressions that Prometheus can read', async () => {
    const { panels, annotations, templating } = await dashboard();
    const asked = [...panels.flatMap(({ targets = [] }) => targets), ...annotations.list].map(
      ({ expr }) => expr,
    );
    expect(asked.length).toBeGreaterThan(20);
    expect(asked.flatMap((expr) => complaints(expr))).toEqual([]);
    for (const { name, definition } of templating.list.filter(({ name }) => name !== 'datasource')) {
      const [, metric = '', label] = /^label_values\((\w+), (\w+)\)$/.exec(definition ?? '') ?? [];
      expect([name, emitted.get(metric)?.includes(label!)]).toEqual([label, true]);
    }
  });

  test('shows every metric but those that only alerts need', async () => {
    const { panels } = await dashboard();
    const shown = JSON.stringify(panels);
    expect(table.filter(({ name }) => !shown.includes(name)).map(({ name }) => name)).toEqual([]);
  });

  test('has each panel once and in a place of its own', async () => {
    const { panels } = await dashboard();
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, n) => `${x + (n % w)},${y + Math.floor(n / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
  });
});

describe('the alerts', () => {
  interface Rule {
    readonly alert?: string;
    readonly record?: string;
    readonly expr: string;
    readonly for?: string;
    readonly labels?: { readonly severity?: string };
    readonly annotations?: { readonly summary?: string };
  }
  const rules = async (): Promise<Rule[]> =>
    (parse(await read('telemetry/alerts.yml')) as { groups: { rules: Rule[] }[] }).groups.flatMap(
      (group) => group.rules,
    );

  test('ask only for what is emitted or recorded, in expressions that Prometheus can read', async () => {
    const all = await rules();
    const recorded = new Set(all.flatMap(({ record }) => record ?? []));
    expect(all.flatMap(({ expr }) => complaints(expr, recorded))).toEqual([]);
  });

  test('say how urgent they are and what is the matter, and are in the document', async () => {
    const alerts = (await rules()).filter(({ alert }) => alert !== undefined);
    for (const { alert, labels, annotations } of alerts) {
      expect([alert, labels?.severity]).toEqual([alert, expect.stringMatching(/^(page|ticket)$/)]);
      expect(annotations?.summary).toBeTruthy();
    }
    const described = [...(await read('telemetry.md')).matchAll(/^\| `(Holdfast\w+)` \|/gm)].map(
      ([, name]) => name,
    );
    expect(described.sort()).toEqual(alerts.map(({ alert }) => alert).sort());
  });

  test('keep services apart, by the job that Prometheus adds', async () => {
    const groupings = (await rules()).flatMap(({ expr }) => expr.match(/\bby \([^)]*\)/g) ?? []);
    expect(groupings.length).toBeGreaterThan(20);
    expect(groupings.filter((each) => !each.startsWith('by (job, '))).toEqual([]);
  });

  test('have one for success after retry that stays high while nothing fails', async () => {
    const flapping = (await rules()).find(({ alert }) => alert === 'HoldfastSilentFlapping');
    expect(flapping?.expr).toContain('outcome="succeeded_after_retry"');
    expect(flapping?.for).toBe('30m');
  });
});

test('the check itself notices a metric that is not there, a label that is not there and a query that is not one', () => {
  expect(complaints('rate(holdfast_retrys_total[5m])')).toHaveLength(1);
  expect(complaints('holdfast_hedges_total{reason="x"}')).toHaveLength(1);
  expect(complaints('sum by (reason) (holdfast_hedges_total)')).toHaveLength(1);
  expect(complaints('sum(holdfast_hedges_total').length).toBeGreaterThan(0);
  expect(complaints('sum by (policy) (rate(holdfast_hedges_total[5m]))')).toEqual([]);
});

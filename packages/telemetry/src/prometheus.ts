import { OptionsError } from 'holdfast';
import { assertKnownFields } from 'holdfast/fields';
import type { Labels } from './metrics.ts';
import type { Family, Observation, Sample } from './observe.ts';

/**
 * `text` is version 0.0.4 of the Prometheus text format, which every scraper reads. `openmetrics` is
 * OpenMetrics 1.0.0.
 */
export type ExpositionFormat = 'text' | 'openmetrics';

/** The `Content-Type` of each format. */
export const contentTypes: Record<ExpositionFormat, string> = {
  text: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
};

/** The options of `prometheus`: only the format of the text. */
export interface PrometheusOptions {
  /** The version of the format. Default: `text`. */
  readonly format?: ExpositionFormat | undefined;
}

/** Writes all metrics in the format of Prometheus. */
export function prometheus(
  observation: Pick<Observation, 'snapshot'>,
  options: PrometheusOptions = {},
): string {
  assertKnownFields({ format: true }, options);
  const { format = 'text' } = options;
  if (!Object.hasOwn(contentTypes, format))
    throw new OptionsError('format', format, "'text' or 'openmetrics'");
  const dialect = dialects[format];
  const lines = observation.snapshot().flatMap((family) => familyLines(family, dialect));
  return `${[...lines, ...dialect.end].join('\n')}\n`;
}

interface Dialect {
  /** The name in the HELP and TYPE lines. The sample lines may have another name. */
  familyName(family: Family): string;
  unit(family: Family): readonly string[];
  escapeHelp(text: string): string;
  bound(le: number): string;
  readonly end: readonly string[];
}

const dialects: Record<ExpositionFormat, Dialect> = {
  text: {
    familyName: ({ name }) => name,
    unit: () => [],
    escapeHelp: (text) => text.replace(/[\\\n]/g, escaped),
    bound: (le) => `${le}`,
    end: [],
  },
  openmetrics: {
    familyName: ({ name, type }) => (type === 'counter' ? name.replace(/_total$/, '') : name),
    unit: ({ name }) => (name.endsWith('_seconds') ? [`# UNIT ${name} seconds`] : []),
    escapeHelp: quoted,
    // OpenMetrics requires that a bucket bound is written as a float, such as `1.0`.
    bound: (le) => (Number.isInteger(le) ? `${le}.0` : `${le}`),
    end: ['# EOF'],
  },
};

function familyLines(family: Family, dialect: Dialect): string[] {
  if (family.samples.length === 0) return [];
  const name = dialect.familyName(family);
  return [
    `# HELP ${name} ${dialect.escapeHelp(family.help)}`,
    `# TYPE ${name} ${family.type}`,
    ...dialect.unit(family),
    ...family.samples.flatMap((sample) => sampleLines(family, sample, dialect)),
  ];
}

function sampleLines(
  { name }: Family,
  { labels, value, count, buckets }: Sample,
  dialect: Dialect,
): string[] {
  if (!buckets) return [`${name}${written(labels)} ${number(value)}`];
  return [
    ...buckets.map((each) => `${name}_bucket${written(labels, dialect.bound(each.le))} ${each.count}`),
    `${name}_bucket${written(labels, '+Inf')} ${count}`,
    `${name}_sum${written(labels)} ${number(value)}`,
    `${name}_count${written(labels)} ${count}`,
  ];
}

function written(labels: Labels, le?: string): string {
  const pairs = Object.entries({ ...labels, le })
    .filter((pair): pair is [string, string] => pair[1] !== undefined)
    .map(([label, value]) => `${label}="${quoted(value)}"`);
  return pairs.length > 0 ? `{${pairs.join(',')}}` : '';
}

function number(value: number): string {
  return Math.abs(value) === Infinity ? `${value > 0 ? '+' : '-'}Inf` : `${value}`;
}

const escapes: Record<string, string> = { '\\': '\\\\', '\n': '\\n', '"': '\\"' };

function quoted(text: string): string {
  return text.replace(/[\\\n"]/g, escaped);
}

function escaped(character: string): string {
  return escapes[character]!;
}

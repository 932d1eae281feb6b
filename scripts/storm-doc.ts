import type { Finding, Trial, WeatherVerdict } from '@holdfast/simulator';

/** A scenario of the suite, or a variant of one, with what became of each policy in it. */
export interface Storm {
  readonly id: string;
  readonly variant: string | null;
  readonly title: string;
  readonly trials: readonly Trial[];
}

/** A scenario with all its variants. */
export interface SuiteEntry {
  readonly id: string;
  /** The default policy met every bound; null where it was not run, or nothing is asked of it. */
  readonly pass: boolean | null;
  /** Naive policies did the harm they must. */
  readonly isModelRight: boolean;
  readonly variants: readonly Storm[];
}

/** The policy that is held to the bounds. */
const ours = 'holdfast';

/** What is behind a bound that the default misses. A bound that is missed and not here is said to be unexplained. */
const whys: Record<string, string> = {
  'S12 failures':
    'The customers of the last 2 s of the stall are served only if their calls are sent. An open breaker sends only probes (see below).',
  'S12 recovery':
    'The breaker opens again for a moment, while CoDel still refuses requests that have waited too long.',
};

export function suiteOf(storms: readonly Storm[]): SuiteEntry[] {
  return [...new Set(storms.map(({ id }) => id))].map((id) => {
    const variants = storms.filter((storm) => storm.id === id);
    const own = variants.flatMap(({ trials }) => trials.filter(({ policy }) => policy === ours));
    const judged = own.filter(({ findings }) => findings.length > 0);
    const isModelRight = variants.every(({ trials }) =>
      trials.every(({ damage }) => damage.every(({ met }) => met)),
    );
    return { id, pass: judged.length > 0 ? judged.every(({ pass }) => pass) : null, isModelRight, variants };
  });
}

/** What of the document is made from figures, by the name of its section. */
export function stormSections(storms: readonly Storm[], seeds: number): ReadonlyMap<string, string> {
  const medians = `The figures are medians of ${seeds} seeds. Times are in seconds, and ✗ marks a missed bound.\n\n`;
  return new Map([
    ['default', medians + defaultTable(storms)],
    ['misses', missesTable(storms)],
    ['others', medians + othersTable(storms)],
  ]);
}

/** The document with its sections written anew: each stands between `<!-- name -->` and `<!-- end of name -->`. */
export function withSections(document: string, sections: ReadonlyMap<string, string>): string {
  let text = document;
  for (const [name, content] of sections) {
    const [begin, end] = [`<!-- ${name} -->`, `<!-- end of ${name} -->`];
    const from = text.indexOf(begin);
    const until = text.indexOf(end);
    if (from < 0 || until < from) throw new TypeError(`The document has no section "${name}".`);
    text = `${text.slice(0, from + begin.length)}\n\n${content}\n\n${text.slice(until)}`;
  }
  return text;
}

function defaultTable(storms: readonly Storm[]): string {
  const rows = storms.flatMap((storm) => {
    const own = storm.trials.find(({ policy }) => policy === ours);
    if (!own || own.findings.length === 0) return [];
    const measured = own.findings.map(
      (each) => `${each.what} **${show(each.figure)}**${each.met ? '' : ' ✗'}`,
    );
    const bounds = own.findings.map(limits);
    return [
      `| ${nameOf(storm)} | ${storm.title} | ${measured.join('; ')} | ${bounds.join('; ')} | ${own.pass ? '✓' : '✗'} |`,
    ];
  });
  const judged = suiteOf(storms).filter(({ pass }) => pass !== null);
  return [
    '| storm | what happens | measured | bounds | |',
    '|---|---|---|---|---|',
    ...rows,
    '',
    `${judged.filter(({ pass }) => pass).length} of ${judged.length} scenarios are met in every variant.`,
  ].join('\n');
}

function missesTable(storms: readonly Storm[]): string {
  const rows = storms.flatMap((storm) => {
    const own = storm.trials.find(({ policy }) => policy === ours);
    return (own?.findings ?? [])
      .filter(({ met }) => !met)
      .map((miss) => {
        const why = whys[`${storm.id} ${miss.metric}`] ?? 'Not explained yet.';
        return `| ${nameOf(storm)} | ${miss.what} ${show(miss.figure)}, bound ${limits(miss)} | ${better(storm, miss)} | ${why} |`;
      });
  });
  if (rows.length === 0) return 'Nowhere, in this run.';
  return ['| storm | figure | better in the same storm | why |', '|---|---|---|---|', ...rows].join('\n');
}

/** Policies that meet a bound that the default misses, and those of them that meet all bounds. */
function better({ trials }: Storm, miss: Finding): string {
  const met = trials.flatMap(({ policy, pass, findings }) => {
    const same = findings.find(({ what }) => what === miss.what);
    return policy !== ours && same?.met
      ? [`\`${policy}\` ${show(same.figure)}${pass ? '' : ', which misses others'}`]
      : [];
  });
  return met.length > 0 ? met.join('; ') : 'nobody';
}

function othersTable(storms: readonly Storm[]): string {
  const rows = storms.flatMap((storm) =>
    storm.trials
      .filter(({ policy, findings }) => policy !== ours && findings.length > 0)
      .map(({ policy, findings }) => {
        const figures = findings.map(
          ({ metric, figure, met }) => `${metric} ${show(figure)}${met ? '' : ' ✗'}`,
        );
        return `| ${nameOf(storm)} | \`${policy}\` | ${figures.join('; ')} |`;
      }),
  );
  return ['| storm | policy | measured |', '|---|---|---|', ...rows].join('\n');
}

/** What the default does on ordinary days, beside a bare call and four plain attempts. */
export function weatherTable(weather: readonly WeatherVerdict[]): string {
  const rows = weather.map(({ id, title, pass, findings }) => {
    const figures = findings.map(({ what, figures: its, atLeast, atMost }) => {
      const { holdfast = null, ...others } = its;
      const beside = Object.values(others).map(show).join(', ');
      return `${what} **${show(holdfast)}**${beside && ` (${beside})`}, ${bounds(atLeast, atMost)}`;
    });
    return `| ${id} | ${title} | ${figures.join('; ')} | ${pass ? '✓' : '✗'} |`;
  });
  return [
    'In brackets: a bare call, then four attempts without budget, breaker and timeout.',
    '',
    '| weather | what happens | measured, and the bound | |',
    '|---|---|---|---|',
    ...rows,
    '',
    `${weather.filter(({ pass }) => pass).length} of ${weather.length} are met.`,
  ].join('\n');
}

function nameOf({ id, variant }: Storm): string {
  return variant ? `${id} (${variant})` : id;
}

function limits({ atLeast, atMost }: Finding): string {
  return bounds(atLeast, atMost);
}

function bounds(atLeast: number | null, atMost: number | null): string {
  return [atLeast === null ? '' : `≥ ${show(atLeast)}`, atMost === null ? '' : `≤ ${show(atMost)}`]
    .filter(Boolean)
    .join(', ');
}

function show(figure: number | null): string {
  if (figure === null) return 'never';
  if (Math.abs(figure) >= 1000) return Math.round(figure).toLocaleString('en');
  return `${Number(figure.toPrecision(4))}`;
}

/** One line with a value, as a scraper reads it. */
export interface Scraped {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface ScrapedFamily {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly unit: string | undefined;
  readonly samples: readonly Scraped[];
}

/**
 * Reads an exposition strictly by the grammar of its format, and throws on anything that a careful scraper would refuse:
 * families that are not together, labels or samples that are there twice, histograms that do not add up.
 */
export function readExposition(text: string, format: 'text' | 'openmetrics'): ScrapedFamily[] {
  if (!text.endsWith('\n')) throw new Error('the last line does not end');
  const lines = text.slice(0, -1).split('\n');
  if (format === 'openmetrics' && lines.pop() !== '# EOF') throw new Error('no # EOF');
  const families: (ScrapedFamily & { samples: Scraped[] })[] = [];
  const seen = new Set<string>();
  for (const line of lines) {
    const comment = /^# (HELP|TYPE|UNIT) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.*)$/.exec(line);
    if (comment) {
      const [, keyword, name = '', rest = ''] = comment;
      if (keyword === 'HELP') {
        if (families.some((each) => each.name === name)) throw new Error(`${name} is there twice`);
        families.push({
          name,
          type: '',
          help: unescaped(rest, format === 'text' ? '\\n' : '\\n"'),
          unit: undefined,
          samples: [],
        });
      } else {
        const last = families.at(-1);
        if (last?.name !== name || last.samples.length > 0) throw new Error(`${line} is out of place`);
        Object.assign(last, keyword === 'TYPE' ? { type: rest } : { unit: rest });
        if (keyword === 'UNIT' && (format === 'text' || !name.endsWith(`_${rest}`)))
          throw new Error(`bad ${line}`);
      }
      continue;
    }
    const sample = readSample(line);
    const family = families.at(-1);
    if (!family || !sampleNames(family, format).includes(sample.name))
      throw new Error(`${line} belongs to no family`);
    const identity = JSON.stringify([sample.name, Object.entries(sample.labels).sort()]);
    if (seen.has(identity)) throw new Error(`${line} is there twice`);
    seen.add(identity);
    family.samples.push(sample);
  }
  for (const family of families) check(family);
  return families;
}

function sampleNames({ name, type }: ScrapedFamily, format: 'text' | 'openmetrics'): string[] {
  if (type === 'histogram') return [`${name}_bucket`, `${name}_sum`, `${name}_count`];
  return [type === 'counter' && format === 'openmetrics' ? `${name}_total` : name];
}

function readSample(line: string): Scraped {
  const head = /^([a-zA-Z_:][a-zA-Z0-9_:]*)/.exec(line);
  if (!head) throw new Error(`not a sample: ${line}`);
  const name = head[1]!;
  let at = name.length;
  const labels: Record<string, string> = {};
  if (line[at] === '{') {
    at++;
    for (;;) {
      const pair = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\n"])*)"([,}])/.exec(line.slice(at));
      if (!pair) throw new Error(`bad labels: ${line}`);
      const [all, label = '', value = '', end] = pair;
      if (label in labels) throw new Error(`${label} is there twice: ${line}`);
      labels[label] = unescaped(value, '\\n"');
      at += all.length;
      if (end === '}') break;
    }
  }
  const value = /^ (\S+)$/.exec(line.slice(at))?.[1];
  if (value === undefined || !/^([+-]?(\d+(\.\d+)?([eE][+-]?\d+)?|Inf)|NaN)$/.test(value))
    throw new Error(`bad value: ${line}`);
  return { name, labels, value: Number(value.replace('Inf', 'Infinity')) };
}

function unescaped(text: string, known: string): string {
  return text.replace(/\\(.?)/gs, (_, character: string) => {
    if (character === '' || !known.includes(character)) throw new Error(`bad escape in ${text}`);
    return character === 'n' ? '\n' : character;
  });
}

function check({ name, type, samples }: ScrapedFamily): void {
  if (!['counter', 'gauge', 'histogram'].includes(type)) throw new Error(`${name} has the type ${type}`);
  if (type === 'counter' && samples.some(({ value }) => value < 0)) throw new Error(`${name} is below 0`);
  if (type !== 'histogram') return;
  const series = Map.groupBy(samples, ({ labels: { le: _, ...labels } }) => JSON.stringify(labels));
  for (const [labels, all] of series) {
    const buckets = all.filter((each) => each.name === `${name}_bucket`);
    const bounds = buckets.map(({ labels: { le } }) => Number(le!.replace('Inf', 'Infinity')));
    const counts = buckets.map(({ value }) => value);
    const rising = (list: number[]) => list.every((each, at) => at === 0 || each >= list[at - 1]!);
    const [total] = all.filter((each) => each.name === `${name}_count`);
    if (!rising(bounds) || !rising(counts)) throw new Error(`${name}${labels}: buckets do not rise`);
    if (bounds.at(-1) !== Infinity || counts.at(-1) !== total?.value)
      throw new Error(`${name}${labels}: no +Inf`);
    if (!all.some((each) => each.name === `${name}_sum`)) throw new Error(`${name}${labels}: no sum`);
  }
}

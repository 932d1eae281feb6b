import { readFileSync } from 'node:fs';
import type { Comparison, Group } from '../comparison.ts';
import type { Spread } from '../estimates.ts';
import { drawChart, type Line } from './chart.ts';
import { callerFigures, type ShownFigure } from './figures.ts';
import { escaped, show, showSeconds, showShare } from './markup.ts';
import { limits, showMetric, verdict } from './verdict.ts';

interface Plot {
  readonly key: string;
  readonly title: string;
  readonly says: string;
  readonly show: (value: number) => string;
  readonly scale?: 'log';
  readonly most?: number;
  readonly cap?: number;
}

const perSecond = (value: number) => `${show(value)}/s`;

const callerPlots: readonly Plot[] = [
  { key: 'goodput', title: 'Goodput', says: 'work done in each second', show: perSecond },
  { key: 'offered', title: 'Offered load', says: 'work that customers began', show: perSecond },
  { key: 'attempts', title: 'Attempts', says: 'what the policy made of it', show: perSecond },
  {
    key: 'multiplication',
    title: 'Load multiplication',
    says: 'attempts for each piece of work',
    show: (value) => `${show(value)}×`,
    most: 1.5,
  },
  { key: 'success', title: 'Success', says: 'of the work that began then', show: showShare, cap: 1, most: 1 },
  {
    key: 'p50',
    title: 'Median wait',
    says: 'of customers, retries included',
    show: showSeconds,
    scale: 'log',
  },
  {
    key: 'p99',
    title: '99th percentile of the wait',
    says: 'of customers, retries included',
    show: showSeconds,
    scale: 'log',
  },
  {
    key: 'breakersOpen',
    title: 'Breakers open',
    says: 'share that is not closed',
    show: showShare,
    cap: 1,
    most: 1,
  },
];

const servicePlots: readonly Plot[] = [
  { key: 'received', title: 'Received', says: 'attempts that reached it', show: perSecond },
  { key: 'completed', title: 'Completed', says: 'whether or not anybody still waited', show: perSecond },
  { key: 'queued', title: 'Queue', says: 'attempts that wait for a worker', show },
  { key: 'zombies', title: 'Done for nobody', says: 'whose caller had given up', show: perSecond },
  { key: 'refused', title: 'Refused', says: 'by the service itself', show: perSecond },
];

/** Formats a comparison as one HTML file. It needs no network, and can be read without a script. */
export function reportHtml(comparison: Comparison): string {
  const { scenario, policies, seeds } = comparison;
  const heading = `${scenario.id}${scenario.variant ? ` (${scenario.variant})` : ''}: ${scenario.title}`;
  const groups = policies[0]?.groups ?? [];
  const [all, ...others] = groups;
  const runs =
    seeds.length > 1
      ? `${seeds.length} seeds; bands are where the mean is at 95 % confidence`
      : `seed ${seeds[0]}`;
  return page(
    heading,
    `<header><h1>${escaped(heading)}</h1>
<p class="verdict">${escaped(verdict(comparison))}</p>
<p>${policies.length} ${policies.length === 1 ? 'policy' : 'policies'}, ${show(scenario.seconds)} s of virtual time, ${escaped(runs)}.
${scenario.faults.map(({ what, from, until }) => `Shaded: ${escaped(what)}, ${from} s to ${until} s.`).join(' ')}</p>
${scenario.notes.map((note) => `<p class="note">${escaped(note)}</p>`).join('')}</header>
${legend(comparison)}
<main>
<section><h2>In figures</h2>${figuresTable(comparison)}${boundsTable(comparison)}</section>
${all ? `<section><h2>All customers</h2><div class="charts">${charts(comparison, all)}</div></section>` : ''}
${others
  .filter((group) => group.kind === 'service')
  .map((group) => section(comparison, group, true))
  .join('')}
${others
  .filter((group) => group.kind !== 'service')
  .map((group) => section(comparison, group, false))
  .join('')}
<section><h2>The policies</h2>${policies.map(({ policy, document }) => `<details><summary>${escaped(policy)}</summary><pre>${escaped(JSON.stringify(document, null, 2))}</pre></details>`).join('')}</section>
</main>
<footer><p>Made with the production code of the policies on virtual time. Hashes of the first run of each:
${policies.map(({ policy, trial }) => `${escaped(policy)} <code>${escaped(trial.hashes[0] ?? '–')}</code>`).join(', ')}.</p></footer>`,
    policies.map((_, index) => furtherStyle(index)).join(''),
  );
}

/** The style sheet has ten line styles. Each further policy gets a hue far from the one before. */
function furtherStyle(index: number): string {
  if (index < 10) return '';
  return `.p${index}{--c:hsl(${(index * 137.5) % 360} 60% 50%);--dash:${2 + 3 * (index % 5)} ${2 + 2 * (index % 3)}}`;
}

export function page(title: string, body: string, moreStyle = ''): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<meta name="color-scheme" content="light dark"><title>${escaped(title)}</title>
<style>${asset('report.css')}${moreStyle}</style></head><body>
${body}
<script>${asset('report.js')}</script>
</body></html>
`;
}

/** The folder `report` is in the package folder, beside `src` and `dist`. */
function asset(name: string): string {
  return readFileSync(new URL(`../../report/${name}`, import.meta.url), 'utf8');
}

function legend({ policies }: Comparison): string {
  const items = policies.map(
    ({ policy }, index) =>
      `<label><input type="checkbox" checked data-policy="${index}"><svg viewBox="0 0 30 10" aria-hidden="true" class="swatch"><g class="p p${index}"><path class="line" d="M1 5L29 5"/></g></svg>${escaped(policy)}</label>`,
  );
  return `<fieldset class="legend"><legend>Show</legend>${items.join('')}</fieldset>`;
}

function figuresTable({ policies }: Comparison): string {
  const columns = callerFigures.filter(({ key }) => policies.some(({ groups }) => groups[0]?.figures[key]));
  const head = columns
    .map(({ title, says }) => `<th scope="col" title="${escaped(says)}">${escaped(title)}</th>`)
    .join('');
  const rows = policies.map(({ policy, trial, groups }, index) => {
    const cells = columns
      .map(
        (each) =>
          `<td data-title="${escaped(each.title)}">${spreadCell(each, groups[0]?.figures[each.key])}</td>`,
      )
      .join('');
    const bounded = trial.findings.length > 0;
    const verdict = bounded
      ? trial.pass
        ? '<span class="good">meets all bounds</span>'
        : '<span class="bad">misses a bound</span>'
      : '';
    return `<tr class="p p${index}"><th scope="row">${escaped(policy)} ${verdict}</th>${cells}</tr>`;
  });
  return `<div class="wide"><table class="stacked"><caption>Medians over the seeds, and between which seeds they are</caption><thead><tr><th scope="col">policy</th>${head}</tr></thead><tbody>${rows.join('')}</tbody></table></div>`;
}

function spreadCell({ show: one }: ShownFigure, spread: Spread | undefined): string {
  if (!spread) return '';
  const [median, least, most] = [spread.median, spread.least, spread.most].map(one);
  return least === most
    ? escaped(median!)
    : `${escaped(median!)}<small>${escaped(`${least} to ${most}`)}</small>`;
}

function boundsTable({ policies }: Comparison): string {
  const whats = [...new Set(policies.flatMap(({ trial }) => trial.findings.map(({ what }) => what)))];
  if (whats.length === 0) return '';
  const rows = whats.map((what) => {
    const found = policies.map(({ trial }) => trial.findings.find((each) => each.what === what));
    const known = found.find((each) => each !== undefined)!;
    const cells = found.map((each) =>
      each
        ? `<td class="${each.met ? 'good' : 'bad'}">${each.met ? '✓' : '✗'} ${escaped(showMetric(each.metric, each.figure))}</td>`
        : '<td></td>',
    );
    return `<tr><th scope="row">${escaped(what)} ${escaped(limits(known))}</th>${cells.join('')}</tr>`;
  });
  const head = policies.map(({ policy }) => `<th scope="col">${escaped(policy)}</th>`).join('');
  return `<div class="wide"><table><caption>What the scenario expects</caption><thead><tr><th scope="col">bound</th>${head}</tr></thead><tbody>${rows.join('')}</tbody></table></div>`;
}

function section(comparison: Comparison, group: Group, isOpen: boolean): string {
  const kinds = { all: '', clients: 'Clients', tier: 'Tier', service: 'Service' };
  return `<section><details${isOpen ? ' open' : ''}><summary><h2>${kinds[group.kind]} ${escaped(group.name)}</h2></summary><div class="charts">${charts(comparison, group)}</div></details></section>`;
}

function charts({ scenario, policies }: Comparison, { kind, name }: Group): string {
  return (kind === 'service' ? servicePlots : callerPlots)
    .map((plot) => {
      const lines = policies.flatMap(({ policy, groups }, style): Line[] => {
        const band = groups.find((each) => each.kind === kind && each.name === name)?.series[plot.key];
        return band ? [{ name: policy, style, band }] : [];
      });
      const isEmpty = lines.every(({ band }) => band.mean.every((value) => !value));
      return isEmpty ? '' : drawChart({ ...plot, seconds: scenario.seconds, faults: scenario.faults, lines });
    })
    .join('');
}

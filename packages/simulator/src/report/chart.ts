import type { FaultWindow } from '../comparison.ts';
import type { Band } from '../estimates.ts';
import { escaped } from './markup.ts';

export interface Line {
  readonly name: string;
  readonly style: number;
  readonly band: Band;
}

export interface Chart {
  readonly title: string;
  readonly says: string;
  readonly seconds: number;
  readonly faults: readonly FaultWindow[];
  readonly lines: readonly Line[];
  readonly show: (value: number) => string;
  readonly scale?: 'linear' | 'log' | undefined;
  readonly most?: number | undefined;
  /** The largest possible value, such as 1 for a share. The axis does not go above it. */
  readonly cap?: number | undefined;
}

const WIDTH = 560;
const HEIGHT = 230;
const LEFT = 58;
const RIGHT = 20;
const TOP = 10;
const BOTTOM = 30;
/** More points on a line would not be visible, and would make the file larger. */
const POINTS_MAX = 250;

/** Draws a chart over time as SVG. Only the values under the mouse pointer need a script. */
export function drawChart(chart: Chart): string {
  const { title, says, seconds, faults, lines } = chart;
  const thinned = lines.map((line) => ({ ...line, band: thin(line.band) }));
  const axis = axisOf(chart, thinned);
  const x = (at: number) => LEFT + (at / seconds) * (WIDTH - LEFT - RIGHT);
  const y = (value: number) => TOP + (1 - axis.place(value)) * (HEIGHT - TOP - BOTTOM);
  const shades = faults.map(({ what, from, until }) => {
    const width = Math.max(1.5, x(until) - x(from));
    return `<rect class="fault" x="${round(x(from))}" y="${TOP}" width="${round(width)}" height="${HEIGHT - TOP - BOTTOM}"><title>${escaped(what)}, ${from} s to ${until} s</title></rect>`;
  });
  const grid = axis.ticks.map(
    (tick) =>
      `<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${round(y(tick))}" y2="${round(y(tick))}"/>` +
      `<text class="tick" x="${LEFT - 6}" y="${round(y(tick) + 4)}" text-anchor="end">${escaped(chart.show(tick))}</text>`,
  );
  const times = linearTicks(0, seconds, 6).map(
    (tick) =>
      `<text class="tick" x="${round(x(tick))}" y="${HEIGHT - 10}" text-anchor="middle">${tick} s</text>`,
  );
  const drawn = thinned.map(({ style, band }) => {
    const { mean, low, high } = band;
    const at = (index: number) => x(((index + 0.5) / mean.length) * seconds);
    const sure = mean.every((value, index) => value === low[index] && value === high[index]);
    const area = sure ? '' : `<path class="band" d="${areaPath(low, high, at, y)}"/>`;
    return `<g class="p p${style}">${area}<path class="line" d="${linePath(mean, at, y)}"/></g>`;
  });
  const data = thinned.map(({ name, style, band }) => ({
    name,
    style,
    says: band.mean.map((value) => (value === null ? '–' : chart.show(value))),
    at: band.mean.map((value) => (value === null ? null : round(y(value)))),
  }));
  const frame = { seconds, left: LEFT, right: RIGHT, width: WIDTH, lines: data };
  return `<figure class="chart"><figcaption><b>${escaped(title)}</b> <span>${escaped(says)}</span></figcaption>
<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" tabindex="0" aria-label="${escaped(`${title}: ${says}. ${spoken(chart)}`)}" data-chart="${escaped(JSON.stringify(frame))}">
${shades.join('')}${grid.join('')}${times.join('')}
<line class="axis" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${HEIGHT - BOTTOM}" y2="${HEIGHT - BOTTOM}"/>
${drawn.join('\n')}
<g class="reader" hidden><line y1="${TOP}" y2="${HEIGHT - BOTTOM}"/></g>
</svg><output class="readout" aria-live="polite"></output></figure>`;
}

function spoken({ lines, show }: Chart): string {
  return lines
    .map(({ name, band }) => {
      const known = band.mean.filter((value) => value !== null);
      if (known.length === 0) return `${name}: nothing`;
      // `Math.min(...known)` would fail: a run of some days has too many values for one call.
      const least = known.reduce((low, value) => Math.min(low, value));
      const most = known.reduce((high, value) => Math.max(high, value));
      return `${name}: from ${show(least)} to ${show(most)}, at the end ${show(known.at(-1)!)}`;
    })
    .join('; ');
}

interface Axis {
  readonly ticks: readonly number[];
  place(value: number): number;
}

function axisOf({ scale, most = 0, cap = Infinity }: Chart, lines: readonly Line[]): Axis {
  const values = lines.flatMap(({ band }) => [...band.mean, ...band.high]).filter((value) => value !== null);
  const top = Math.min(cap, Math.max(most, ...values));
  if (scale === 'log') {
    const positive = values.filter((value) => value > 0);
    const low = 10 ** Math.floor(Math.log10(Math.min(...positive, 0.1)));
    const high = 10 ** Math.ceil(Math.log10(Math.max(top, low * 10)));
    const decades = Math.round(Math.log10(high / low));
    return {
      ticks: Array.from({ length: decades + 1 }, (_, decade) => low * 10 ** decade),
      place: (value) => Math.max(0, Math.log10(Math.max(value, low) / low) / decades),
    };
  }
  const ticks = linearTicks(0, top > 0 ? top : 1, 4);
  const end = Math.max(top, ticks.at(-1)!);
  return { ticks, place: (value) => Math.min(value, end) / end };
}

function linearTicks(from: number, until: number, about: number): number[] {
  const rough = (until - from) / about;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].find((each) => each * power >= rough)! * power;
  const ticks: number[] = [];
  for (let tick = Math.ceil(from / step) * step; tick <= until + step / 1e6; tick += step) {
    ticks.push(Number(tick.toPrecision(10)));
  }
  return ticks;
}

function linePath(values: Band['mean'], x: (index: number) => number, y: (value: number) => number): string {
  let path = '';
  let isDown = false;
  for (const [index, value] of values.entries()) {
    if (value === null) isDown = false;
    else {
      path += `${isDown ? 'L' : 'M'}${round(x(index))} ${round(y(value))}`;
      isDown = true;
    }
  }
  return path;
}

function areaPath(
  low: Band['low'],
  high: Band['high'],
  x: (index: number) => number,
  y: (value: number) => number,
): string {
  let path = '';
  let from = 0;
  for (let index = 0; index <= low.length; index++) {
    if (index < low.length && low[index] !== null) continue;
    if (index > from) {
      const there: string[] = [];
      const back: string[] = [];
      for (let each = from; each < index; each++) {
        there.push(`${round(x(each))} ${round(y(high[each]!))}`);
        back.unshift(`${round(x(each))} ${round(y(low[each]!))}`);
      }
      path += `M${[...there, ...back].join('L')}Z`;
    }
    from = index + 1;
  }
  return path;
}

/** Reduces a line to at most `POINTS_MAX` points. Each new point is the mean of neighbouring points. */
function thin(band: Band): Band {
  const { length } = band.mean;
  const together = Math.ceil(length / POINTS_MAX);
  if (together <= 1) return band;
  const means = (values: readonly (number | null)[]) =>
    Array.from({ length: Math.ceil(length / together) }, (_, index) => {
      const known = values.slice(index * together, (index + 1) * together).filter((value) => value !== null);
      return known.length === 0 ? null : known.reduce((sum, each) => sum + each, 0) / known.length;
    });
  return { mean: means(band.mean), low: means(band.low), high: means(band.high) };
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

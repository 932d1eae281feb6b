/** One curve: simulated as a line, published as rings. */
export interface Curve {
  readonly name: string;
  readonly points: readonly (readonly [x: number, y: number])[];
  /** What was published or follows from a closed form, to compare with. */
  readonly expected?: readonly (readonly [x: number, y: number])[] | undefined;
}

export interface Axis {
  readonly says: string;
  readonly ticks: readonly number[];
  readonly isLog?: boolean | undefined;
  readonly unit?: string | undefined;
}

export interface Panel {
  readonly title: string;
  readonly x: Axis;
  readonly y: Axis;
  readonly curves: readonly Curve[];
  /** A stretch to shade: when the trouble was. */
  readonly trouble?: readonly [from: number, until: number] | undefined;
}

const PANEL = { width: 430, height: 300, left: 62, right: 26, top: 40, bottom: 46 };
const LEGEND_ROW = 18;
const LEGEND_COLUMN = 200;

/** Readable on white and on black. */
const colours = ['#0a7fc4', '#d95f02', '#1b9e77', '#c0519b', '#a67c00', '#7570b3', '#888888', '#e7298a'];
const dashes = ['', '7 3', '2 3', '9 3 2 3', '', '4 4', '1 4', '7 3'];

const style = `
  text { font: 12px system-ui, sans-serif; fill: #333 }
  .title { font-weight: 600; font-size: 13px }
  .quiet { fill: #666 }
  .grid { stroke: #ddd }
  .trouble { fill: #c00; opacity: .1 }
  .curve { fill: none; stroke-width: 2 }
  .ring { fill: none; stroke-width: 1.4 }
  @media (prefers-color-scheme: dark) { text { fill: #ddd } .quiet { fill: #aaa } .grid { stroke: #444 } }
`;

/** Panels side by side with one legend, as a file of its own: it follows the reader's light or dark. */
export function figure(title: string, panels: readonly Panel[]): string {
  const names = [...new Set(panels.flatMap(({ curves }) => curves.map(({ name }) => name)))];
  const isCompared = panels.some(({ curves }) => curves.some(({ expected }) => expected));
  const width = panels.length * PANEL.width;
  const columns = Math.floor((width - PANEL.left) / LEGEND_COLUMN);
  const rows = Math.ceil((names.length + (isCompared ? 1 : 0)) / columns);
  const height = PANEL.height + rows * LEGEND_ROW + 8;
  const styleOf = (name: string) => names.indexOf(name) % colours.length;
  const drawn = panels.map(
    (panel, index) => `<g transform="translate(${index * PANEL.width} 0)">${draw(panel, styleOf)}</g>`,
  );
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<style>${style}</style>`,
    ...drawn,
    `<g transform="translate(${PANEL.left} ${PANEL.height + 14})">${legend(names, isCompared, columns)}</g>`,
    '</svg>',
  ].join('\n')}\n`;
}

function draw({ title, x, y, curves, trouble }: Panel, styleOf: (name: string) => number): string {
  const { width, height, left, right, top, bottom } = PANEL;
  const across = scale(x, left, width - right);
  const up = scale(y, height - bottom, top);
  const grid = y.ticks.map(
    (tick) =>
      `<line class="grid" x1="${left}" x2="${width - right}" y1="${up(tick)}" y2="${up(tick)}"/>` +
      `<text class="quiet" x="${left - 6}" y="${up(tick) + 4}" text-anchor="end">${said(tick, y.unit)}</text>`,
  );
  const ticks = x.ticks.map(
    (tick) =>
      `<text class="quiet" x="${across(tick)}" y="${height - bottom + 17}" text-anchor="middle">${said(tick, x.unit)}</text>`,
  );
  const shade = trouble
    ? `<rect class="trouble" x="${across(trouble[0])}" y="${top}" width="${round(across(trouble[1]) - across(trouble[0]))}" height="${height - bottom - top}"/>`
    : '';
  const lines = curves.map(({ name, points, expected = [] }) => {
    const its = styleOf(name);
    const path = points.map(([at, value]) => `${across(at)},${up(value)}`).join(' ');
    const rings = expected.map(
      ([at, value]) =>
        `<circle class="ring" cx="${across(at)}" cy="${up(value)}" r="4" stroke="${colours[its]}"/>`,
    );
    return (
      `<polyline class="curve" points="${path}" stroke="${colours[its]}" stroke-dasharray="${dashes[its]}"/>` +
      rings.join('')
    );
  });
  return [
    `<text class="title" x="${left}" y="16">${escaped(title)}</text>`,
    `<text class="quiet" x="${left}" y="32">${escaped(y.says)}</text>`,
    shade,
    ...grid,
    ...ticks,
    `<text class="quiet" x="${(left + width - right) / 2}" y="${height - 10}" text-anchor="middle">${escaped(x.says)}</text>`,
    ...lines,
  ].join('\n');
}

function legend(names: readonly string[], isCompared: boolean, columns: number): string {
  const place = (index: number) =>
    `translate(${(index % columns) * LEGEND_COLUMN} ${Math.floor(index / columns) * LEGEND_ROW})`;
  const entries = names.map(
    (name, index) =>
      `<g transform="${place(index)}"><line x1="0" x2="24" y1="0" y2="0" stroke-width="2" stroke="${colours[index % colours.length]}" stroke-dasharray="${dashes[index % dashes.length]}"/><text x="30" y="4">${escaped(name)}</text></g>`,
  );
  const ring = `<g transform="${place(names.length)}"><circle cx="12" cy="0" r="4" fill="none" stroke="#888" stroke-width="1.4"/><text x="30" y="4">published</text></g>`;
  return [...entries, ...(isCompared ? [ring] : [])].join('');
}

/** From the least to the greatest tick; what is outside is drawn at the edge. */
function scale({ ticks, isLog }: Axis, from: number, to: number): (value: number) => number {
  const place = isLog ? Math.log10 : (value: number) => value;
  const least = Math.min(...ticks);
  const most = Math.max(...ticks);
  return (value) => {
    const inside = Math.min(most, Math.max(least, value));
    return round(from + ((place(inside) - place(least)) / (place(most) - place(least))) * (to - from));
  };
}

function said(value: number, unit = ''): string {
  return `${value.toLocaleString('en-US', { maximumFractionDigits: 6 })}${unit}`;
}

function round(value: number): number {
  return Math.round(10 * value) / 10;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}

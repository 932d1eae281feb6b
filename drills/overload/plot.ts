export interface Panel {
  readonly title: string;
  /** What could be done, from some second on. */
  readonly capacity: readonly { readonly from: number; readonly perSecond: number }[];
  readonly lines: readonly { readonly name: 'protected' | 'bare'; readonly points: readonly number[] }[];
}

const width = 720;
const height = 190;
const left = 46;
const top = 34;
const inner = { width: width - left - 96, height: height - top - 34 };
const scaleMax = 600;
const colours = { protected: '#1b7f5c', bare: '#c0392b' };

/** Panels below each other: goodput over time, with what could have been done as a dashed line. */
export function overloadPlot(panels: readonly Panel[]): string {
  const all = panels.map(
    (panel, index) => `<g transform="translate(0 ${index * height})">${draw(panel)}</g>`,
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height * panels.length}" font-family="sans-serif" font-size="11">`,
    '<title>Requests that are served in time under overload, with protection and without</title>',
    '<rect width="100%" height="100%" fill="#fff"/>',
    ...all,
    '</svg>\n',
  ].join('\n');
}

function draw({ title, capacity, lines }: Panel): string {
  const points = Math.max(...lines.map((line) => line.points.length));
  const seconds = points / 2;
  const x = (second: number) => (left + (second / seconds) * inner.width).toFixed(1);
  const y = (perSecond: number) =>
    (top + inner.height - (Math.min(perSecond, scaleMax) / scaleMax) * inner.height).toFixed(1);

  const grid = [0, 100, 300, 500].map(
    (value) =>
      `<line x1="${left}" x2="${left + inner.width}" y1="${y(value)}" y2="${y(value)}" stroke="#e5e5e5"/>` +
      `<text x="${left - 6}" y="${Number(y(value)) + 4}" text-anchor="end" fill="#666">${value}</text>`,
  );
  const ticks = Array.from({ length: Math.floor(seconds / 5) + 1 }, (_, index) => index * 5).map(
    (second) =>
      `<text x="${x(second)}" y="${top + inner.height + 16}" text-anchor="middle" fill="#666">${second} s</text>`,
  );
  const could = capacity.map(({ from, perSecond }, index) => {
    const to = capacity[index + 1]?.from ?? seconds;
    return `<line x1="${x(from)}" x2="${x(to)}" y1="${y(perSecond)}" y2="${y(perSecond)}" stroke="#555" stroke-dasharray="4 3"/>`;
  });
  const curves = lines.map(({ name, points: values }) => {
    const path = values.map((value, index) => `${x((index + 0.5) / 2)},${y(value)}`).join(' ');
    const last = Number(y(values.at(-1) ?? 0));
    return (
      `<polyline fill="none" stroke="${colours[name]}" stroke-width="2" points="${path}"/>` +
      `<text x="${left + inner.width + 8}" y="${name === 'bare' ? Math.max(last, Number(y(40))) + 4 : last - 6}" fill="${colours[name]}">${name}</text>`
    );
  });
  const heading =
    `<text x="${left}" y="16" font-weight="bold">${title}</text>` +
    `<text x="${left}" y="29" fill="#666">served in time, requests a second (dashed: what it can do)</text>`;
  return [heading, ...grid, ...ticks, ...could, ...curves].join('\n');
}

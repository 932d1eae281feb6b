import { median, type Spread } from '../estimates.ts';
import type { Sweep, SweepCell } from '../sweep.ts';
import { page } from './html.ts';
import { escaped, show } from './markup.ts';

const shades = ' ░▒▓█';

/** Formats a sweep as a table for a terminal. Cells with higher figures have a darker block character. */
export function heatText(sweep: Sweep): string {
  const { columns, rows, cellAt, shareOf } = layout(sweep);
  const cells = rows.map((row) => columns.map((column) => cellAt(row, column)));
  const said = (cell: SweepCell | undefined) => {
    const { median } = cell?.figure ?? { median: null };
    const shade = median === null ? '×' : shades[Math.min(4, Math.floor(shareOf(median) * 5))];
    return `${shade}${shade} ${median === null ? 'never' : show(median)}`;
  };
  const width = Math.max(
    7,
    ...cells.flat().map((cell) => said(cell).length),
    ...columns.map((each) => `${each}`.length),
  );
  const first = Math.max(4, ...rows.map((row) => `${row}`.length));
  const line = (head: string, its: readonly string[]) =>
    `  ${head.padStart(first)}  ${its.map((each) => each.padStart(width)).join('  ')}`;
  const [across, down] = sweep.axes;
  return [
    `${sweep.what} with ${sweep.policy} in ${sweep.scenario}, medians of ${sweep.seeds} seed${sweep.seeds === 1 ? '' : 's'}`,
    `across: ${across!.path}${down ? `; down: ${down.path}` : ''}`,
    '',
    line('', columns.map(String)),
    ...cells.map((row, index) => line(`${rows[index]}`, row.map(said))),
  ].join('\n');
}

/** Formats a sweep over one or two settings as an HTML page. The page loads no other files. */
export function heatHtml(sweep: Sweep): string {
  const { columns, rows, cellAt, shareOf } = layout(sweep);
  const [across, down] = sweep.axes;
  const cell = (row: unknown, column: unknown) => {
    const { median, least, most } = cellAt(row, column)?.figure ?? { median: null, least: null, most: null };
    if (median === null) return '<td class="none">never</td>';
    const spread =
      least === most
        ? ''
        : `<small>${escaped(`${show(least)} to ${most === null ? 'never' : show(most)}`)}</small>`;
    return `<td style="background:${colour(shareOf(median))}">${escaped(show(median))}${spread}</td>`;
  };
  const body = rows.map(
    (row) =>
      `<tr><th scope="row">${escaped(`${row}`)}</th>${columns.map((column) => cell(row, column)).join('')}</tr>`,
  );
  const title = `${sweep.what} with ${sweep.policy} in ${sweep.scenario}`;
  return page(
    title,
    `<header><h1>${escaped(title)}</h1><p>Medians of ${sweep.seeds} seeds. Across: <code>${escaped(across!.path)}</code>${down ? `; down: <code>${escaped(down.path)}</code>` : ''}. Darker is more; differences within the spread of the seeds have no colour.</p></header>
<main><div class="wide"><table class="heat"><thead><tr><th></th>${columns.map((column) => `<th scope="col">${escaped(`${column}`)}</th>`).join('')}</tr></thead><tbody>${body.join('')}</tbody></table></div></main>`,
  );
}

function layout({ axes, cells }: Sweep) {
  const [across, down] = axes;
  const known = cells.flatMap(({ figure }) => figure.median ?? []);
  const least = Math.min(...known);
  const most = Math.max(...known);
  // Figures that differ by less than the usual spread between seeds get the same colour.
  const widths = cells.flatMap(({ figure }) => widthOf(figure));
  const noise = widths.length > 0 ? median(widths) : 0;
  return {
    columns: across!.values,
    rows: down?.values ?? [''],
    cellAt: (row: unknown, column: unknown) =>
      cells.find(({ values }) => values[0] === column && (!down || values[1] === row)),
    shareOf: (figure: number) =>
      most - least > noise ? Math.max(0, figure - least - noise) / (most - least - noise) : 0,
  };
}

/** Returns an empty list if a figure is null, so that `flatMap` leaves this cell out. */
function widthOf({ least, most }: Spread): readonly number[] {
  return least === null || most === null ? [] : [most - least];
}

/** Mixes a colour from pale yellow (`share` 0) to blue (`share` 1). Black text is readable on all of them. */
function colour(share: number): string {
  const mix = (from: number, to: number) => Math.round(from + (to - from) * share);
  return `rgb(${mix(255, 86)},${mix(247, 156)},${mix(214, 214)})`;
}

import { styleText } from 'node:util';
import type { CaseResult, Spread } from './compare.ts';
import type { TimedResult } from './harness.ts';

type Row = readonly [
  name: string,
  figure: string,
  wall: string,
  toFloor: string,
  spread: string,
  ci: string,
  ahead: string,
];

const heading: Row = ['', 'median', 'wall', '× floor', 'p10–p90', '95 % CI', 'we are ahead'];

/** A table a case, with the bars below it. */
export function report(results: readonly CaseResult[]): string {
  return results.map(tableOf).join('\n\n');
}

function tableOf(result: CaseResult): string {
  const wall = 'wall' in result ? (result as TimedResult).wall : undefined;
  const { spread } = result;
  const figure = (value: number | undefined) => (value === undefined ? '' : amount(value, result.unit));
  const rows: Row[] = [
    heading,
    ['floor', figure(result.floor), figure(wall?.floor), '1.00', '', '', ''],
    [
      'holdfast',
      figure(result.ours),
      figure(wall?.ours),
      times(result.toFloor),
      range(spread.toFloor),
      confidence(spread.toFloor),
      '',
    ],
    ...Object.entries(result.peers)
      .sort(([, a], [, b]) => (result.better === 'lower' ? a - b : b - a))
      .map(([name, value]): Row => {
        const toFloor = spread.peersToFloor[name] as Spread;
        const ahead = spread.toPeers[name] as Spread;
        return [
          name,
          figure(value),
          figure(wall?.peers[name]),
          times(toFloor.median),
          range(toFloor),
          confidence(toFloor),
          `${times(ahead.median)} ×`,
        ];
      }),
  ];
  const lines = [
    styleText('bold', `${result.case}`) +
      ` (${result.unit}, ${result.better} is better, ${result.rounds} ${result.rounds === 1 ? 'round' : 'rounds'})`,
    ...align(rows),
    ...result.bars.map(({ bar, value, met }) => {
      const mark = met ? styleText('green', 'met   ') : styleText('red', 'NOT MET');
      return `  ${mark} ${bar}: ${times(value)}`;
    }),
  ];
  return lines.join('\n');
}

/** Names to the left, figures to the right; a column that has nothing but its heading is left out. */
function align(rows: readonly Row[]): string[] {
  const [, ...below] = rows;
  const columns = heading
    .map((_, column) => rows.map((row) => row[column] as string))
    .filter((_, column) => below.some((row) => row[column] !== ''))
    .map((cells, column) => {
      const width = Math.max(...cells.map(({ length }) => length));
      return cells.map((cell) => (column === 0 ? cell.padEnd(width) : cell.padStart(width)));
    });
  return rows.map((_, row) => `  ${columns.map((cells) => cells[row]).join('  ')}`.trimEnd());
}

function amount(value: number, unit: CaseResult['unit']): string {
  if (unit === 'ns' && value >= 100_000) return `${(value / 1e6).toFixed(2)} ms`;
  if (unit === 'ns' && value >= 10_000) return `${(value / 1e3).toFixed(1)} µs`;
  return `${value < 10 ? value.toFixed(2) : Math.round(value).toLocaleString('en')} ${unit}`;
}

function range({ p10, p90 }: Spread): string {
  return `${times(p10)}–${times(p90)}`;
}

function confidence({ ci95: [low, high] }: Spread): string {
  return `${low.toFixed(3)}–${high.toFixed(3)}`;
}

function times(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toFixed(2);
}

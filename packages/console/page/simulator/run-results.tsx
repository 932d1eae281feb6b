import type { AnswerOf } from '../../src/api/routes.ts';
import { percent } from '../format.ts';
import { CommandLine } from '../parts/act-dialog.tsx';
import { Glyph } from '../parts/glyph.tsx';
import { LinesChart } from './lines-chart.tsx';

export type SimulatorRun = AnswerOf<'GET /simulator/runs/:id'>['run'];
type Row = NonNullable<SimulatorRun['rows']>[number];

export function RunResults({ run, rows }: { readonly run: SimulatorRun; readonly rows: readonly Row[] }) {
  return (
    <>
      <div class="two even">
        <div class="sheet">
          <header>
            <h2>Answers in time, a second</h2>
          </header>
          <div class="body">
            <LinesChart
              title="Successes a second"
              lines={rows.map(({ name, goodput }) => ({ name, points: goodput }))}
            />
          </div>
        </div>
        <div class="sheet">
          <header>
            <h2>Calls, a second</h2>
          </header>
          <div class="body">
            <LinesChart
              title="Calls a second"
              lines={rows.map(({ name, load }) => ({ name, points: load }))}
            />
          </div>
        </div>
      </div>
      <div class="two">
        <div class="sheet scroll">
          <table class="cards">
            <thead>
              <tr>
                <th>policy</th>
                <th class="num">success</th>
                <th class="num">recovery</th>
                <th class="num">load</th>
                <th class="num">p99</th>
                <th class="num">goodput</th>
                <th>bounds of this storm</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <ResultRow key={row.name} row={row} />
              ))}
            </tbody>
          </table>
        </div>
        <div class="sheet">
          <header>
            <h2>The same in a shell</h2>
          </header>
          <div class="body stack tight">
            <CommandLine command={run.command} />
            <p class="quiet small">
              Put the document into policy.yaml first. The seeds are the same, and so are the figures.
            </p>
          </div>
        </div>
      </div>
    </>
  );
}

function ResultRow({ row: { name, verdict, figures } }: { readonly row: Row }) {
  const holds = verdict.startsWith('holds');
  const { success, multiplication, recovery, p99, goodput } = figures;
  return (
    <tr>
      <td class="whole">
        <b>{name}</b>
      </td>
      <td class="num" data-is="success">
        {success === undefined ? '–' : percent(success)}
      </td>
      <td class="num nowrap" data-is="recovery">
        {recovery === undefined ? 'never' : `${recovery.toFixed(0)} s`}
      </td>
      <td class="num nowrap" data-is="load">
        {multiplication === undefined ? '–' : `${multiplication.toFixed(2)} ×`}
      </td>
      <td class="num nowrap" data-is="p99">
        {p99 === undefined ? '–' : `${p99.toFixed(2)} s`}
      </td>
      <td class="num nowrap" data-is="goodput">
        {goodput === undefined ? '–' : `${goodput.toFixed(1)} /s`}
      </td>
      <td class="whole">
        <span class={`state is-${holds ? 'ok' : 'parked'}`}>
          <Glyph state={holds ? 'ok' : 'parked'} label="" />
          {verdict}
        </span>
      </td>
    </tr>
  );
}

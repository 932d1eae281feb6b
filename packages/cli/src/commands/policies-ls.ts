import { fleetState, policiesOf } from '@holdfast/events';
import type { Command } from '../command.ts';
import { controlText } from '../control-text.ts';
import { breakersText, policyTotals } from '../policy-totals.ts';
import { storeFlag, withStore } from '../store.ts';
import { warning } from '../styled-text.ts';
import { type Row, table } from '../table.ts';

export const policiesLs: Command = {
  name: 'policies ls',
  summary: 'policies of all processes that use the store: success, added load, breakers',
  flags: storeFlag,
  examples: ['policies ls', 'policies ls --json'],
  run: (given, terminal) =>
    withStore(given, terminal, async (engine) => {
      const fleet = await fleetState(engine);
      const reported = policiesOf(fleet.processes);
      const controlled = fleet.controls.flatMap(({ control }) => ('policy' in control ? control.policy : []));
      const names = [...new Set([...reported.map(({ name }) => name), ...controlled])].sort();
      const rows: Row[] = [];
      for (const name of names) {
        const states = reported.filter((each) => each.name === name);
        const totals = policyTotals(states);
        const controls = fleet.controls.filter(
          ({ control }) => 'policy' in control && control.policy === name,
        );
        if (given.flags.json) terminal.out(JSON.stringify({ policy: name, ...totals, controls }));
        rows.push([
          ...[name, String(totals.processes), String(totals.operations)],
          ...[percent(totals.success), percent(totals.successAfterRetry), `${totals.load.toFixed(2)}×`],
          breakersText(totals),
        ]);
        if (states.some(({ enforcedShare }) => enforcedShare === 0))
          rows.push(warning(`${name} only observes: it retries and refuses nothing`));
        for (const control of controls) rows.push(warning(controlText(control, fleet.now, terminal)));
      }
      if (given.flags.json) return 0;
      const numbers = ['PROCESSES', 'CALLS', 'SUCCESS', 'AFTER RETRY', 'LOAD'];
      const headings = [
        'POLICY',
        ...numbers.map((heading) => ({ heading, align: 'right' }) as const),
        'BREAKERS',
      ];
      terminal.out(
        rows.length === 0
          ? 'No process reports a policy here: "joinFleet" of @holdfast/events makes it visible.'
          : table(headings, rows, terminal.columns),
      );
      return 0;
    }),
};

function percent(share: number | undefined): string {
  return share === undefined ? '-' : `${(100 * share).toFixed(1)} %`;
}

import {
  assertReport,
  forgottenAfterMs,
  type Presence,
  type PresentProcess,
  processesMax,
  sortedProcesses,
} from '@holdfast/contracts';
import { comparableText } from './column-values.ts';
import type { Database } from './database.ts';

const reportText = 'SELECT {schema}.report_process($1, $2, $3, $4)';
const processesText = `SELECT report, heard_at FROM {schema}.process WHERE heard_at > {schema}.now_ms() - $1::bigint`;

export function postgresPresence(database: Database): Presence {
  return {
    async report(process) {
      const json = assertReport(process);
      const values = [comparableText(process.id), json, forgottenAfterMs, processesMax];
      await database.rows(reportText, values);
    },

    async leave(id) {
      await database.rows('DELETE FROM {schema}.process WHERE id = $1', [comparableText(id)]);
    },

    async processes() {
      const rows = await database.rows(processesText, [forgottenAfterMs]);
      const present = rows.map(
        ([report, heardAt]): PresentProcess => ({
          ...JSON.parse(report as string),
          heardAt: heardAt as number,
        }),
      );
      return sortedProcesses(present);
    },
  };
}

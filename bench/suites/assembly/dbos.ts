import { DBOS } from '@dbos-inc/dbos-sdk';
import type { Contestant } from '../events/event-case.ts';
import { type Load, type Order, stepNames, stepResult, stepsPerSecond } from './load.ts';

/** As its guide says: a registered workflow, each step with `runStep`. It has the same number of connections as we have. */
export async function dbosTransact(url: string, load: Load): Promise<Contestant> {
  const database = new URL(url);
  database.pathname = '/dbos_bench';
  DBOS.setConfig({
    name: 'bench',
    systemDatabaseUrl: database.href,
    systemDatabasePoolSize: 10,
    logLevel: 'error',
    runAdminServer: false,
  });
  const order = DBOS.registerWorkflow(
    async (given: Order) => {
      const results = [];
      for (const name of stepNames)
        results.push(await DBOS.runStep(async () => stepResult(name, given), { name }));
      return results.length;
    },
    { name: 'order' },
  );
  await DBOS.launch();
  return stepsPerSecond(
    load,
    async (given) => (await DBOS.startWorkflow(order)(given)).getResult(),
    () => DBOS.shutdown(),
  );
}

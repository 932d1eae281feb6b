import { joinFleet } from '@holdfast/events';
import { openSqlite } from '@holdfast/sqlite';
import { policyNamed, watcher } from './policies.ts';

const engine = await openSqlite({ file: 'fleet.db' });
const member = joinFleet({ engine, service: 'checkout' });
const payments = policyNamed('payments');
console.log(await payments.run(() => 'the order is paid', { target: 'bank' }));
await member.refresh();

process.once('SIGINT', async () => {
  watcher.close();
  await member.stop();
  await engine.close();
});

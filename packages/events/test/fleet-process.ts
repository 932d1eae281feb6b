import { joinFleet } from '@holdfast/events';
import { policies, policy } from 'holdfast';
import { openStore } from './open-store.ts';

/**
 * A process with the policy `payment`. It prints its state as a line of JSON whenever the state changes, and leaves the
 * fleet on SIGTERM.
 */
const [kind, where, schema] = process.argv.slice(2) as [string, string, string];
const payment = policy({ name: 'payment', retryOn: 'any', attempts: 2, backoff: { base: 1, cap: 1 } });
await payment.run(() => 1, { target: 'bank' });
const engine = await openStore(kind, where, schema);
const fleet = joinFleet({ engine, service: 'checkout', every: '200ms' });

let shown = '';
const timer = setInterval(() => {
  const [{ killSwitch, overridden = null, targets }] = policies() as [ReturnType<typeof policies>[0]];
  const { breaker, forced = null } = targets.find(({ target }) => target === 'bank')!;
  const line = JSON.stringify({ id: fleet.id, breaker, forced, killSwitch, overridden });
  if (line !== shown) process.stdout.write(`${line}\n`);
  shown = line;
}, 20);
process.once('SIGTERM', async () => {
  clearInterval(timer);
  await fleet.stop();
  await engine.close();
});

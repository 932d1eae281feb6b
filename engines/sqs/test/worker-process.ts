import { once } from 'node:events';
import { type Carrier, carrierEngine } from '@holdfast/contracts/carrier';
import type { SqsHandle } from '../src/held-messages.ts';
import { sqsCarrier } from '../src/sqs-carrier.ts';
import { readSqsOptions } from '../src/sqs-options.ts';
import { access } from './sqs-harness.ts';
import { ackOf, retryOf } from './test-engines.ts';

/**
 * A worker that prints what it does. It retries events whose id ends with `r`, and acknowledges others. At the named point of its
 * fourth event, or a later one, it kills itself; `between` is between the retry and the delete. With the point `wait` it settles its first event when a line comes from its parent.
 */
const [endpoint, prefix, point] = process.argv.slice(2);
const { settings, rest } = readSqsOptions({
  ...{ ...access, endpoint: endpoint!, prefix: prefix!, visibility: '2s', waitTime: '1s' },
});
const carrier = sqsCarrier(settings);
const fatal = 4;
let handled = 0;
let isRetrying = false;

function reached(where: string): void {
  if (where === point && handled >= fatal) process.kill(process.pid, 'SIGKILL');
}

const mortal: Carrier<SqsHandle> = {
  ...carrier,
  async done(handles) {
    if (isRetrying) reached('between');
    return carrier.done(handles);
  },
};
const { broker } = carrierEngine(mortal, { ...rest, durability: 'power' });

for (;;) {
  const { deliveries } = await broker.lease('orders', { owner: 'w', limit: 10, leaseMs: 60_000 });
  reached('arrival');
  for (const delivery of deliveries) {
    handled += 1;
    console.log(`begun ${delivery.id}`);
    if (point === 'wait') await once(process.stdin, 'data');
    reached('handler');
    console.log(`effect ${delivery.id}`);
    reached('effect');
    isRetrying = delivery.id.endsWith('r') && delivery.attempt === 1;
    const [result] = await broker.settle([isRetrying ? retryOf(delivery) : ackOf(delivery)]);
    if (result!.took) console.log(`${isRetrying ? 'retried' : 'done'} ${delivery.id}`);
    else console.log(`${result!.because} ${delivery.id}`);
    reached('done');
  }
}

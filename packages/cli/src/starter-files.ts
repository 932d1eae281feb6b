import { version } from './version.ts';

/** The files of a small project that runs without changes: `npm install && npm start`. */
export function starterFiles(name: string): Readonly<Record<string, string>> {
  return {
    'package.json': packageJson(name),
    'client.ts': client,
    'consumer.ts': consumer,
    'assembly.ts': assembly,
    'gateway.yaml': gateway,
    'main.ts': main,
    'README.md': readme,
  };
}

function packageJson(name: string): string {
  const packages = ['assembly', 'cli', 'console', 'events', 'gateway', 'http', 'sqlite'];
  const own = Object.fromEntries(packages.map((each) => [`@holdfast/${each}`, `^${version()}`]));
  const json = {
    name:
      name
        .toLowerCase()
        .replaceAll(/[^a-z0-9-]+/g, '-')
        .replaceAll(/^-|-$/g, '') || 'holdfast-starter',
    private: true,
    type: 'module',
    engines: { node: '>=22.19' },
    scripts: {
      start: 'node main.ts',
      console: 'holdfast console --store starter.db',
      gateway: 'holdfast gateway gateway.yaml',
      status: 'holdfast status --store starter.db',
    },
    dependencies: { ...own, holdfast: `^${version()}` },
  };
  return `${JSON.stringify(json, undefined, 2)}\n`;
}

const client = `// A fetch that retries what may be repeated, within two seconds, and stops when the server is down.
import { createFetch } from '@holdfast/http';
import { policy } from 'holdfast';

export const fetchSafely = createFetch({
  policy: policy({ name: 'warehouse', patience: '2s' }),
  // A POST gets a key, so that a repeat is not a second order.
  idempotency: 'auto',
});
`;

const consumer = `// Handles each order once, however often the process or the warehouse fails.
import { consumer } from '@holdfast/events';
import type { SqliteEngine } from '@holdfast/sqlite';
import { fetchSafely } from './client.ts';

export interface Order {
  readonly id: string;
  readonly item: string;
}

export function orderConsumer(engine: SqliteEngine, warehouse: string) {
  return consumer<Order>({
    engine,
    topic: 'orders',
    // While the breaker of this policy is open, no order is taken and no attempt is used up.
    dependsOn: ['warehouse'],
    async handler({ payload }) {
      const response = await fetchSafely(\`\${warehouse}/reserve\`, {
        method: 'POST',
        body: JSON.stringify(payload),
      });
      if (!response.ok) throw Object.assign(new Error(\`the warehouse said \${response.status}\`), { status: response.status });
      console.log(\`reserved \${payload.item} for order \${payload.id}\`);
    },
  });
}
`;

const assembly = `// Work of several steps: after a crash only the step that was not finished runs again.
import { assembly } from '@holdfast/assembly';
import { fetchSafely } from './client.ts';
import type { Order } from './consumer.ts';

export const shipOrder = (warehouse: string) =>
  assembly('ship-order', { version: 1, patience: '1h', plan: ['pick', 'ship'] }, async (step, order: Order) => {
    const ask = async (act: string, signal: AbortSignal) => {
      const response = await fetchSafely(\`\${warehouse}/\${act}\`, { method: 'POST', body: JSON.stringify(order), signal });
      if (!response.ok) throw Object.assign(new Error(\`\${act}: \${response.status}\`), { status: response.status });
      return response.text();
    };
    await step.run('pick', ({ signal }) => ask('pick', signal), { undo: (_, { signal }) => ask('unpick', signal) });
    return step.run('ship', ({ signal }) => ask('ship', signal));
  });
`;

const gateway = `# Every protection in front of a service that cannot be changed: npm run gateway
listen: 127.0.0.1:8080
admin: { port: 9901 }
upstreams:
  warehouse:
    instances: [http://127.0.0.1:3000]
    circuitBreaker: { failureThreshold: 10, timeout: 30s, halfOpenRequests: 3 }
    bulkhead: { maxConcurrentRequests: 100, maxQueuedRequests: 50 }
    retry: { attempts: 3, patience: 2s }
routes:
  - match: /
    upstream: warehouse
    rateLimiting: { requestsPerSecond: 1000, burstSize: 2000 }
`;

const main = `// Starts a warehouse that fails one time in four, sells five orders, and waits until all are handled.
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { assemblies } from '@holdfast/assembly';
import { producer } from '@holdfast/events';
import { openSqlite } from '@holdfast/sqlite';
import { shipOrder } from './assembly.ts';
import { fetchSafely } from './client.ts';
import { type Order, orderConsumer } from './consumer.ts';

let asked = 0;
const server = createServer((request, response) => {
  request.resume();
  asked += 1;
  response.writeHead(asked % 4 === 0 ? 503 : 200).end('done');
}).listen(0, '127.0.0.1');
await once(server, 'listening');
const warehouse = \`http://127.0.0.1:\${(server.address() as AddressInfo).port}\`;

const engine = await openSqlite({ file: 'starter.db' });
const orders = producer<Order>({ engine, topic: 'orders' });
const consuming = orderConsumer(engine, warehouse);
await consuming.start();
for (let number = 1; number <= 5; number++) {
  await orders.publish({ payload: { id: \`\${Date.now()}-\${number}\`, item: 'a book' } });
}

const program = shipOrder(warehouse);
const work = assemblies({ engine, programs: [program] });
await work.run();
const shipping = await work.start(program, { id: 'first', item: 'a lamp' }, { id: \`ship-\${Date.now()}\` });
for await (const { text } of shipping.follow()) console.log(\`shipping: \${text}\`);

while (consuming.state().counters.succeeded < 5) await new Promise((resolve) => setTimeout(resolve, 50));
console.log(\`The warehouse was asked \${asked} times. Now look at it: npm run console\`);
await consuming.stop();
await work.stop();
await fetchSafely.close();
await engine.close();
server.close();
`;

const readme = `# A Holdfast starter

\`npm install && npm start\` runs it: a warehouse that fails one time in four, five orders and one shipment, all of which succeed.

| file | what it does |
|---|---|
| client.ts | a \`fetch\` that retries what may be repeated |
| consumer.ts | handles events once, with retries, and sets aside what no retry helps |
| assembly.ts | work of several steps that survives a crash |
| gateway.yaml | protections in front of a service that cannot be changed: \`npm run gateway\` |
| main.ts | puts them together |

\`npm run console\` prints the link of a page for those who look after it; \`npm run status\` says whether anything needs a person.
`;

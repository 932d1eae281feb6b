import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { chaosFetch } from '@holdfast/chaos';
import { createFetch } from '@holdfast/http';
import { openSqlite } from '@holdfast/sqlite';
import { storyOf } from 'holdfast';
import { shop } from './shop.ts';

const engine = await openSqlite({ file: 'shop.db' });
await engine.transaction((db) =>
  db.exec('CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, item TEXT)'),
);
const server = shop(engine).listen(0, '127.0.0.1');
await once(server, 'listening');
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/orders`;
const lamp = { method: 'POST', body: 'a lamp' };
// The first answer to each client is lost: the client sees a 502, whatever the shop has done.
const lost502 = { kind: 'status', status: 502, direction: 'response', first: 1 } as const;
const lossy = () => chaosFetch({ faults: [lost502] });

const unsafe = await createFetch({ fetch: lossy() })(url, lamp);
console.log(`without a key: ${unsafe.status} ${storyOf(unsafe)?.stop}`);
const safe = await createFetch({ fetch: lossy(), idempotency: 'auto' })(url, lamp);
console.log(`with a key: ${safe.status} ${await safe.text()}`);
// A key of your own also holds when the process that sent the first request is gone.
const basket = { ...lamp, headers: { 'idempotency-key': 'basket-17' } };
const lost = await createFetch({ fetch: lossy(), policy: { attempts: 1 } })(url, basket);
const found = await createFetch()(url, basket);
const replayed = found.headers.get('idempotent-replayed');
console.log(`basket 17: ${lost.status}, then ${found.status} ${await found.text()} (replayed: ${replayed})`);

const rows = await engine.transaction((db) => db.prepare('SELECT * FROM orders').all());
console.log(`orders in the file: ${rows.length}`);
server.close();
await engine.close();

import { openSqlite } from '@holdfast/sqlite';

/** Publishes so many events to a topic of a file, in small batches, and ends. */
const [file = '', topic = '', name = '', count = '0'] = process.argv.slice(2);
const engine = await openSqlite({ file });
for (let at = 0; at < Number(count); at += 5) {
  const batch = Array.from({ length: 5 }, (_, index) => ({ payload: `${name} ${at + index}`, key: name }));
  await engine.broker.publish(topic, batch);
}
await engine.close();

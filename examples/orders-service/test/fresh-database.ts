import pg from 'pg';
import { onTestFinished } from 'vitest';

/** The URL of an empty database on the server, which is removed after the test. */
export async function freshDatabase(url: string): Promise<string> {
  const name = `example_${process.pid}_${Date.now().toString(36)}`;
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(`CREATE DATABASE ${name}`);
  await client.end();
  onTestFinished(async () => {
    const last = new pg.Client({ connectionString: url });
    await last.connect();
    await last.query(`DROP DATABASE ${name} WITH (FORCE)`);
    await last.end();
  });
  return Object.assign(new URL(url), { pathname: `/${name}` }).href;
}

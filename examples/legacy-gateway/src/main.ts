// An old server, and the gateway in front of it.
import path from 'node:path';
import { startGateway } from '@holdfast/gateway';
import { startOldServer } from './old-server.ts';

const { server, url } = await startOldServer(Number(process.env.LEGACY_PORT ?? 3000));
process.env.LEGACY_URL = url; // the file reads it
const gateway = await startGateway(path.join(import.meta.dirname, '../gateway.yaml'));
console.log(`the old server is on ${url}`);
console.log(`the gateway is on http://127.0.0.1:${gateway.address.port}`);

for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, async () => {
    await gateway.close(); // running requests finish first
    server.close();
    server.closeAllConnections();
    console.log('closed');
  });

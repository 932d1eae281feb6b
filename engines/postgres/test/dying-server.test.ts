import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { openPostgres } from '@holdfast/postgres';
import { expect, onTestFinished, test } from 'vitest';

/** A message of PostgreSQL's protocol. */
function message(type: string, content: string): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(content.length + 4);
  return Buffer.concat([Buffer.from(type), length, Buffer.from(content, 'latin1')]);
}

test('a server that dies in the packet that makes a connection ready is away, and ends no process', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => {
      const ready = [message('R', '\0\0\0\0'), message('Z', 'I')];
      const died = message(
        'E',
        'SFATAL\0C57P01\0Mterminating connection due to unexpected postmaster exit\0\0',
      );
      socket.end(Buffer.concat([...ready, died]));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  await expect(openPostgres({ url: `postgres://who@127.0.0.1:${port}/what` })).rejects.toMatchObject({
    code: 'HOLDFAST_POSTGRES_UNAVAILABLE',
  });
});

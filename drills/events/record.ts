import { once } from 'node:events';
import { connect } from 'node:net';

/** Writes into the record that another process keeps; a line is on its disk when this resolves. */
export async function openRecord(socketPath: string): Promise<(line: string) => Promise<void>> {
  const socket = connect(socketPath);
  await once(socket, 'connect');
  socket.unref();
  const waiting: (() => void)[] = [];
  // An answer is a byte for each line.
  socket.on('data', (bytes) => {
    for (let count = 0; count < bytes.length; count++) waiting.shift()?.();
  });
  return (line) =>
    new Promise((resolve) => {
      waiting.push(resolve);
      socket.write(`${line}\n`);
    });
}

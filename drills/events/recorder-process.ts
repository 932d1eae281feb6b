import { closeSync, fdatasyncSync, openSync, writeSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';

/** Keeps a record outside of the killed processes: lines from a socket, answered when they are on the disk. */
const [file = '', socketPath = ''] = process.argv.slice(2);
const log = openSync(file, 'a');
let unanswered: { socket: Socket; lines: string[] }[] = [];

const server = createServer((socket) => {
  let rest = '';
  socket.on('error', () => {}); // its process was killed
  socket.on('data', (bytes) => {
    const lines = (rest + bytes).split('\n');
    rest = lines.pop()!;
    if (lines.length === 0) return;
    if (unanswered.length === 0) setImmediate(write);
    unanswered.push({ socket, lines });
  });
});

function write(): void {
  const arrived = unanswered;
  unanswered = [];
  writeSync(log, arrived.map(({ lines }) => lines.map((line) => `${line}\n`).join('')).join(''));
  fdatasyncSync(log);
  for (const { socket, lines } of arrived) if (socket.writable) socket.write('.'.repeat(lines.length));
}

server.listen(socketPath, () => process.send?.('ready'));
process.once('disconnect', () => {
  closeSync(log);
  process.exit();
});

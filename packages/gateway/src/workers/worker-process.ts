import type { Socket } from 'node:net';
import { type SingleProcess, startSingle } from './start-gateway.ts';
import type { FromWorker, ToWorker } from './worker-messages.ts';

/** The program of a worker process. It executes the messages of the first process. */

const say = (message: FromWorker) => process.send?.(message);
let running: SingleProcess | undefined;
let isDrained = false;

async function stop(): Promise<void> {
  const cutOff = (await running?.drain()) ?? 0;
  isDrained = true;
  await running?.close();
  // After the disconnect, nothing keeps this process alive.
  process.send?.({ kind: 'drained', cutOff } satisfies FromWorker, () => process.disconnect());
}

function accept(id: number, socket: Socket | undefined): void {
  // Without a confirmation, the first process passes the connection to another worker.
  if (isDrained) {
    socket?.destroy();
    return;
  }
  say({ kind: 'accepted', id });
  if (socket) running!.accept(socket);
}

process.on('message', (message: ToWorker, socket: Socket | undefined) => {
  if (message.kind === 'connection') accept(message.id, socket);
  else if (message.kind === 'start') {
    const { config, workers, prefix } = message;
    startSingle(config, { workers, prefix, listens: false }, undefined).then(
      (parts) => {
        running = parts;
        say({ kind: 'ready' });
      },
      (error: Error) => {
        say({ kind: 'failed', error: error.message });
        process.exitCode = 1;
        process.disconnect();
      },
    );
  } else if (message.kind === 'stop') void stop();
  else {
    const { id, command } = message;
    running!.ask(command).then(
      ([answer]) => say({ kind: 'answer', id, answer: answer! }),
      (error: Error) => say({ kind: 'refused', id, error: error.message }),
    );
  }
});

// Signals are ignored, because the first process decides when workers end. If the first process dies, the
// worker drains and exits.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => {});
process.on('disconnect', () => {
  void running?.drain().then(() => process.exit());
});

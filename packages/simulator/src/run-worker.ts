import { parentPort } from 'node:worker_threads';
import { perform, type RunRequest } from './run.ts';

parentPort!.on('message', (request: RunRequest) => {
  perform(request).then(
    (answer) => parentPort!.postMessage({ answer }),
    (error: unknown) =>
      parentPort!.postMessage({ error: error instanceof Error ? error.message : String(error) }),
  );
});

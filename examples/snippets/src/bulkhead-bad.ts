import { policy } from 'holdfast';

/** A report takes half a second: the last of five thousand has its turn after four minutes. Nobody waits for that. */
export const endless = policy({ patience: '5s', bulkhead: { concurrent: 10, queue: 5000 } });

export function report(id: string): Promise<Response> {
  return endless.run(({ signal }) => fetch(`https://reports.test/${id}`, { signal }));
}

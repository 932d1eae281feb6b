import { policy } from 'holdfast';

/** Reports are slow. Ten at a time, twenty more wait; the rest of the program keeps its sockets and its memory. */
export const reports = policy({ patience: '5s', bulkhead: { concurrent: 10, queue: 20 } });

export function report(id: string): Promise<Response> {
  return reports.run(({ signal }) => fetch(`https://reports.test/${id}`, { signal }), {
    priority: 'sheddable',
  });
}

import { policy } from 'holdfast';

const replicas = ['replica-1', 'replica-2', 'replica-3'];

export const reads = policy({ patience: '2s' });

/** A retry goes to another replica, and one that keeps failing is left alone for a while. */
export function read(key: string): Promise<Response> {
  return reads.run(({ signal, target }) => fetch(`https://${target}.test/${key}`, { signal }), {
    targets: replicas,
  });
}

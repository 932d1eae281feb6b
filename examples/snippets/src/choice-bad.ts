import { policy } from 'holdfast';

const replicas = ['replica-1', 'replica-2', 'replica-3'];
let turn = 0;

export const blind = policy({ patience: '2s' });

/** Chosen once for all attempts: when that replica is down, each retry goes to it again. */
export function read(key: string): Promise<Response> {
  const target = replicas[turn++ % replicas.length] as string;
  return blind.run(({ signal }) => fetch(`https://${target}.test/${key}`, { signal }), { target });
}

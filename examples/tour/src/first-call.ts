// A call that fails for a moment, and a policy that gets it done.
import { policy, storyOf } from 'holdfast';

/** Stands for a service that refuses two calls and answers the third. */
export function flakyService(): () => Promise<string> {
  let calls = 0;
  return async () => {
    calls++;
    if (calls < 3) throw Object.assign(new Error('connection reset'), { code: 'ECONNRESET' });
    return `order accepted on call ${calls}`;
  };
}

export async function firstCall(): Promise<string> {
  const orders = policy({ name: 'orders', patience: '5s' });
  const place = flakyService();
  try {
    return await orders.run(place);
  } catch (error) {
    // The real error, untouched; its story says why no further attempt was made.
    console.error(error, storyOf(error)?.stop);
    throw error;
  }
}

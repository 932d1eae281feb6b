// A call that fails for a moment, and a policy that gets it done.
import { policy } from 'holdfast';

const prices = policy({ name: 'prices', patience: '5s' });

// Stands for a service that refuses two calls and answers the third.
let calls = 0;
async function priceOf(product: string): Promise<string> {
  calls++;
  if (calls < 3) throw Object.assign(new Error('connection reset'), { code: 'ECONNRESET' });
  return `${product} costs 12 EUR, said call ${calls}`;
}

export const price = await prices.run(() => priceOf('a lamp')); // any function that returns a promise
console.log(price);

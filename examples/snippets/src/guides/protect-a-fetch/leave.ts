import { createFetch } from '@holdfast/http';

const busy = async () => new Response('busy', { status: 503, headers: { 'retry-after': '60' } });
const shopFetch = createFetch({ policy: { patience: '5m' }, fetch: busy });
const customer = new AbortController();
setTimeout(() => customer.abort(new Error('the customer left')), 100);
const leaving = shopFetch('https://shop.example/prices/lamp', { signal: customer.signal });
await leaving.catch(({ message }) => console.log(message));

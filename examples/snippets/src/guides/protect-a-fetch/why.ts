import { createFetch } from '@holdfast/http';
import { storyOf } from 'holdfast';
import { tellStory } from 'holdfast/explain';

// Stands for an API that is away until tomorrow, and says so.
const away = async () => new Response('closed', { status: 503, headers: { 'retry-after': '86400' } });
const shopFetch = createFetch({ policy: { name: 'shop', patience: '5s' }, fetch: away });

const response = await shopFetch('https://shop.example/prices/lamp');
console.log(response.status, tellStory(storyOf(response)));
const order = await shopFetch('https://shop.example/orders', { method: 'POST', body: '{}' });
console.log(order.status, storyOf(order)?.stop);

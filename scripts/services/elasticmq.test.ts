import { describe } from 'vitest';
import { restartTests } from './restart-tests.ts';
import { ownService, titled } from './service.ts';

const elasticmq = await ownService('elasticmq');

describe.skipIf(elasticmq.missing)(titled('elasticmq', elasticmq), () => {
  restartTests(elasticmq, {
    async put(url, text) {
      await ask(url, '/', { Action: 'CreateQueue', QueueName: 'crumbs' });
      await ask(url, '/queue/crumbs', { Action: 'SendMessage', MessageBody: text });
    },
    get: (url) =>
      ask(url, '/queue/crumbs', {
        Action: 'ReceiveMessage',
        MaxNumberOfMessages: '10',
        VisibilityTimeout: '0',
      }),
  });
});

async function ask(url: string, path: string, parameters: Record<string, string>): Promise<string> {
  const response = await fetch(`${url}${path}`, { method: 'POST', body: new URLSearchParams(parameters) });
  const text = await response.text();
  if (!response.ok) throw new Error(text);
  return text;
}

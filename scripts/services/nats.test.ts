import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import net from 'node:net';
import { describe } from 'vitest';
import { restartTests } from './restart-tests.ts';
import { ownService, titled } from './service.ts';

const nats = await ownService('nats');

describe.skipIf(nats.missing)(titled('nats', nats), () => {
  restartTests(nats, {
    async put(url, text) {
      await ask(
        url,
        '$JS.API.STREAM.CREATE.crumbs',
        JSON.stringify({ name: 'crumbs', subjects: ['crumbs'] }),
      );
      await ask(url, 'crumbs', text);
    },
    async get(url) {
      const found = await ask(
        url,
        '$JS.API.STREAM.MSG.GET.crumbs',
        JSON.stringify({ last_by_subj: 'crumbs' }),
      );
      return Buffer.from(found.message.data, 'base64').toString();
    },
  });
});

/** Publishes to JetStream, and reads its answer. */
async function ask(url: string, subject: string, body: string) {
  const { hostname, port } = new URL(url);
  const socket = net.connect(Number(port), hostname);
  socket.setEncoding('utf8');
  const inbox = randomUUID();
  socket.write(`CONNECT {"verbose":false}\r\nSUB ${inbox} 1\r\n`);
  socket.write(`PUB ${subject} ${inbox} ${body.length}\r\n${body}\r\n`);
  let text = '';
  try {
    for (;;) {
      text += (await once(socket, 'data'))[0];
      const answer = /\r\nMSG \S+ 1 +\d+\r\n(.*)\r\n/.exec(text);
      if (answer === null) continue;
      const parsed = JSON.parse(answer[1]!);
      if (parsed.error !== undefined) throw new Error(parsed.error.description);
      return parsed;
    }
  } finally {
    socket.destroy();
  }
}

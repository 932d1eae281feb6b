import net from 'node:net';
import { connect } from 'amqplib';
import { sleep, systemClock, systemRandom } from 'holdfast';
import { describe, expect, onTestFinished, test } from 'vitest';
import { service, titled } from '../../../scripts/services/service.ts';
import { Session } from '../src/session.ts';

const rabbitmq = await service('rabbitmq');
const { port: serverPort } = new URL(rabbitmq.missing === undefined ? rabbitmq.url : 'amqp://localhost:5672');

/** A server between a session and RabbitMQ, which can swallow the answers and then drop the connections. */
async function setup() {
  const sockets = new Set<net.Socket>();
  let isMute = false;
  const proxy = net.createServer((client) => {
    const server = net.connect(Number(serverPort), '127.0.0.1');
    client.pipe(server);
    server.on('data', (data) => void (isMute || client.write(data)));
    for (const socket of [client, server]) sockets.add(socket.on('error', () => {}));
  });
  await new Promise<void>((resolve) => void proxy.listen(0, '127.0.0.1', resolve));
  const { port } = proxy.address() as net.AddressInfo;
  const server = { protocol: 'amqp', hostname: '127.0.0.1', port, heartbeat: 0 };
  const session = new Session({
    ...{ servers: [server], socket: {}, clock: systemClock, random: systemRandom },
    // Never reached: what waits for it hangs.
    timeoutMs: 600_000,
  });
  const drop = () => {
    isMute = false;
    for (const socket of sockets) socket.destroy();
    sockets.clear();
  };
  onTestFinished(async () => {
    drop();
    proxy.close();
  });
  return {
    session,
    mute: () => {
      isMute = true;
    },
    drop,
  };
}

describe.skipIf(rabbitmq.missing)(titled('a session', rabbitmq), () => {
  test('does not wait for ever for a channel that closes when the connection is lost', async () => {
    const { session, mute, drop } = await setup();
    const work = session.withChannel(async () => {
      mute();
      return 'done';
    });
    await sleep(systemClock, 100);
    drop();
    expect(await work).toBe('done');
    expect(await session.withChannel(async () => 'again')).toBe('again');
    await session.close();
  });

  test('closes, although the connection is lost meanwhile', async () => {
    const { session, mute, drop } = await setup();
    await session.connection();
    mute();
    const closed = session.close();
    await sleep(systemClock, 100);
    drop();
    await closed;
  });

  test('opens another connection, if the server has closed the last one before anybody listened', async () => {
    const { session } = await setup();
    const first = await session.connection();
    const closed = await connect(`amqp://127.0.0.1:${serverPort}`);
    await closed.close();
    await expect(session.openChannel(() => closed.createChannel())).rejects.toThrow('Connection closed');
    expect(await session.connection()).not.toBe(first);
    await first.close();
    await session.close();
  });
});

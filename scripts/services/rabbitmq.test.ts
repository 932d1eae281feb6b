import { on } from 'node:events';
import net from 'node:net';
import { describe, expect } from 'vitest';
import { restartTests } from './restart-tests.ts';
import { ownService, titled } from './service.ts';

const rabbitmq = await ownService('rabbitmq');

/** Classes and methods of AMQP 0-9-1. */
const methods = {
  start: [10, 10],
  startOk: [10, 11],
  tune: [10, 30],
  tuneOk: [10, 31],
  open: [10, 40],
  openOk: [10, 41],
  openChannel: [20, 10],
  openChannelOk: [20, 11],
  declare: [50, 10],
  declareOk: [50, 11],
  publish: [60, 40],
  get: [60, 70],
  getOk: [60, 71],
  ack: [60, 80],
  select: [85, 10],
  selectOk: [85, 11],
} as const;
type Method = keyof typeof methods;
const frames = { method: 1, header: 2, body: 3 };
const reserved = int(2, 0);
const queue = short('crumbs');

describe.skipIf(rabbitmq.missing)(titled('rabbitmq', rabbitmq), () => {
  restartTests(rabbitmq, {
    put: (url, text) =>
      connected(url, async ({ call, send, expected }) => {
        const durable = int(1, 2);
        const quorum = long(Buffer.concat([short('x-queue-type'), Buffer.from('S'), long('quorum')]));
        await call('declare', [reserved, queue, durable, quorum], 'declareOk');
        await call('select', [int(1, 0)], 'selectOk');
        const [defaultExchange, noFlags] = [short(''), int(1, 0)];
        send(1, 'method', method('publish'), reserved, defaultExchange, queue, noFlags);
        const [size, noProperties] = [int(8, text.length), int(2, 0)];
        send(1, 'header', int(2, methods.publish[0]), int(2, 0), size, noProperties);
        send(1, 'body', Buffer.from(text));
        await expected('ack');
      }),
    get: (url) =>
      connected(url, async ({ call, next }) => {
        const noAcknowledgement = int(1, 1);
        await call('get', [reserved, queue, noAcknowledgement], 'getOk');
        const [, body] = [await next(), await next()];
        return body.toString();
      }),
  });
});

interface Channel {
  send(channel: number, type: keyof typeof frames, ...payload: Buffer[]): void;
  /** The payload of the next frame. */
  next(): Promise<Buffer>;
  expected(answer: Method): Promise<Buffer>;
  call(request: Method, parameters: Buffer[], answer: Method): Promise<Buffer>;
}

/** Opens a connection and channel 1, and closes them in the end. */
async function connected<T>(url: string, work: (channel: Channel) => Promise<T>): Promise<T> {
  const { hostname, port, username, password } = new URL(url);
  const socket = net.connect(Number(port), hostname);
  const incoming = payloads(socket);
  const send: Channel['send'] = (channel, type, ...parts) => {
    const payload = Buffer.concat(parts);
    socket.write(Buffer.concat([int(1, frames[type]), int(2, channel), long(payload), int(1, 0xce)]));
  };
  const next = async () => (await incoming.next()).value as Buffer;
  const expected = async (answer: Method) => {
    const payload = await next();
    expect([payload.readUInt16BE(0), payload.readUInt16BE(2)]).toEqual(methods[answer]);
    return payload.subarray(4);
  };
  const callOn = (channel: number) => (request: Method, parameters: Buffer[], answer: Method) => {
    send(channel, 'method', method(request), ...parameters);
    return expected(answer);
  };
  try {
    socket.write('AMQP\0\0\x09\x01');
    await expected('start');
    const login = [long(''), short('PLAIN'), long(`\0${username}\0${password}`), short('en_US')];
    const limits = await callOn(0)('startOk', login, 'tune');
    send(0, 'method', method('tuneOk'), limits);
    await callOn(0)('open', [short('/'), short(''), int(1, 0)], 'openOk');
    await callOn(1)('openChannel', [short('')], 'openChannelOk');
    return await work({ send, next, expected, call: callOn(1) });
  } finally {
    socket.destroy();
  }
}

async function* payloads(socket: net.Socket): AsyncGenerator<Buffer> {
  const headBytes = 7;
  let bytes = Buffer.alloc(0);
  for await (const [chunk] of on(socket, 'data', { close: ['close'] })) {
    bytes = Buffer.concat([bytes, chunk]);
    while (bytes.length >= headBytes && bytes.length > headBytes + bytes.readUInt32BE(3)) {
      const end = headBytes + bytes.readUInt32BE(3);
      yield bytes.subarray(headBytes, end);
      bytes = bytes.subarray(end + 1);
    }
  }
  throw new Error('The server has closed the connection.');
}

function method(name: Method): Buffer {
  return Buffer.concat(methods[name].map((number) => int(2, number)));
}

function int(size: number, value: number): Buffer {
  return Buffer.from(value.toString(16).padStart(2 * size, '0'), 'hex');
}

function short(text: string): Buffer {
  return Buffer.concat([int(1, text.length), Buffer.from(text)]);
}

function long(content: string | Buffer): Buffer {
  return Buffer.concat([int(4, content.length), Buffer.from(content)]);
}

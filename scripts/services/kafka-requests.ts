import { once } from 'node:events';
import net from 'node:net';

/** As much of Kafka's protocol as it takes to see that a broker works, without a client. */

const apis = {
  produce: { key: 0, version: 3 },
  fetch: { key: 1, version: 4 },
  metadata: { key: 3, version: 5 },
  createTopics: { key: 19, version: 2 },
} as const;

/** Sends one request on a connection of its own. Answers with what follows the correlation id. */
export async function askKafka(url: string, api: keyof typeof apis, ...fields: Buffer[]): Promise<Buffer> {
  const { hostname, port } = new URL(url);
  const { key, version } = apis[api];
  const request = Buffer.concat([int16(key), int16(version), int32(1), string('holdfast'), ...fields]);
  const socket = net.connect(Number(port), hostname);
  socket.write(Buffer.concat([int32(request.length), request]));
  let answer = Buffer.alloc(0);
  try {
    while (answer.length < 4 || answer.length < 4 + answer.readInt32BE(0)) {
      const [chunk] = (await once(socket, 'data')) as [Buffer];
      answer = Buffer.concat([answer, chunk]);
    }
    return answer.subarray(8);
  } finally {
    socket.destroy();
  }
}

export function int16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeInt16BE(value);
  return bytes;
}

export function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

export function int64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(BigInt(value));
  return bytes;
}

export function string(text: string): Buffer {
  return Buffer.concat([int16(Buffer.byteLength(text)), Buffer.from(text)]);
}

/** How many brokers take requests. One that was just restarted is not counted until the controller has admitted it again. */
export async function liveBrokers(url: string): Promise<number> {
  const noTopics = int32(0);
  const mayCreate = Buffer.from([0]);
  const answer = await askKafka(url, 'metadata', noTopics, mayCreate);
  const throttleBytes = 4;
  return answer.readInt32BE(throttleBytes);
}

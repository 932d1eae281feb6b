import { Pool } from 'undici';
import { findWrk, wrk } from '../../scripts/wrk.ts';

/** What came back. */
export interface Answered {
  readonly requests: number;
  /** Responses of 400 and above, and connections that broke. */
  readonly failed: number;
}

export type LoadKind = 'get' | 'post' | 'keyedPost';

/** Requests of three kinds, each on connections of its own. A kind without connections sends nothing. */
export interface Load {
  readonly url: string;
  readonly seconds: number;
  readonly connections: Readonly<Record<LoadKind, number>>;
}

const found = findWrk();
let runs = 0;

/** Sends one request after another on each connection, with wrk, or with undici where wrk is not installed. */
export async function send({ url, seconds, connections }: Load): Promise<Record<LoadKind, Answered>> {
  const run = ++runs;
  const kinds = Object.entries(connections) as [LoadKind, number][];
  const answered = await Promise.all(
    kinds.map(async ([kind, count]): Promise<[LoadKind, Answered]> => {
      if (count === 0) return [kind, { requests: 0, failed: 0 }];
      if ('missing' in found) return [kind, await sendWithUndici(url, kind, count, seconds, run)];
      const script = scripts[kind](`${process.pid}-${run}`);
      const { requests, bad, socketErrors } = await wrk(found.program, {
        url,
        connections: count,
        seconds,
        script,
      });
      return [kind, { requests, failed: bad + socketErrors }];
    }),
  );
  return Object.fromEntries(answered) as Record<LoadKind, Answered>;
}

export const loadProgram: string = 'missing' in found ? 'undici' : 'wrk';

/** Each POST has an id, so that the instances see whether one was executed twice. */
const posts = (header: string) => (run: string) =>
  `
local count = 0
request = function()
  count = count + 1
  return wrk.format("POST", nil, { ["${header}"] = "${run}-" .. count, ["content-type"] = "text/plain" }, "one")
end
`;

const scripts: Readonly<Record<LoadKind, (run: string) => string>> = {
  get: () => '',
  post: posts('x-id'),
  keyedPost: posts('idempotency-key'),
};

async function sendWithUndici(
  url: string,
  kind: LoadKind,
  connections: number,
  seconds: number,
  run: number,
): Promise<Answered> {
  const pool = new Pool(url, { connections, pipelining: 1 });
  const until = performance.now() + seconds * 1000;
  let [requests, failed] = [0, 0];
  const header = kind === 'post' ? 'x-id' : 'idempotency-key';
  const sender = async () => {
    while (performance.now() < until) {
      const id = `${process.pid}-${run}-${++requests}`;
      try {
        const { statusCode, body } = await pool.request({
          path: '/',
          method: kind === 'get' ? 'GET' : 'POST',
          ...(kind !== 'get' && { headers: { [header]: id }, body: 'one' }),
        });
        await body.dump();
        if (statusCode >= 400) failed++;
      } catch {
        failed++;
      }
    }
  };
  await Promise.all(Array.from({ length: connections }, sender));
  await pool.close();
  return { requests, failed };
}

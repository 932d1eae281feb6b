import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { createFetch } from '@holdfast/http';
import axios, { type AxiosInstance } from 'axios';
import axiosRetry from 'axios-retry';
import got from 'got';
import ky from 'ky';
import { Agent, RetryAgent, request } from 'undici';
import type { Claim, Observed, Theme, Trial } from './claim.ts';

type Name = 'holdfast' | 'axios-retry' | 'got' | 'ky' | 'undici';

interface Request {
  readonly url: string;
  readonly method: 'GET' | 'POST' | 'PUT';
  readonly body?: string | (() => Readable);
  readonly signal: AbortSignal;
}

/** A client with the defaults of its library. */
interface Client {
  /** Ends when the library gives up or succeeds; a bad status is an end like any other. */
  send(request: Request): Promise<unknown>;
  close?(): Promise<unknown>;
}

/** `isEager`: with waits as short as the library allows, and all else as it comes. */
type MakeClient = (isEager: boolean) => Client;

const clients: Readonly<Record<Name, MakeClient>> = {
  holdfast(isEager) {
    const ours = createFetch({ policy: isEager ? { backoff: false } : {} });
    return {
      send: async ({ url, body, ...rest }) => (await ours(url, { ...rest, ...webBody(body) })).text(),
      close: () => ours.close(),
    };
  },
  'axios-retry'() {
    const theirs: AxiosInstance = axios.create();
    axiosRetry(theirs); // without waits by default
    return {
      send: ({ body, ...rest }) => theirs.request({ ...rest, ...(body && { data: nodeBody(body) }) }),
    };
  },
  got(isEager) {
    const theirs = isEager ? got.extend({ retry: { backoffLimit: 0, noise: 0 } }) : got;
    return {
      send: ({ url, body, ...rest }) => theirs(url, { ...rest, ...(body && { body: nodeBody(body) }) }),
    };
  },
  ky(isEager) {
    const theirs = isEager ? ky.create({ retry: { delay: () => 0 } }) : ky;
    return {
      send: ({ url, body, ...rest }) => theirs(url, { ...rest, ...webBody(body) }).text(),
    };
  },
  undici(isEager) {
    const dispatcher = new RetryAgent(new Agent(), isEager ? { minTimeout: 0 } : {});
    return {
      async send({ url, body, ...rest }) {
        const response = await request(url, { ...rest, dispatcher, ...(body && { body: nodeBody(body) }) });
        await response.body.text();
      },
      close: () => dispatcher.destroy(),
    };
  },
};

function nodeBody(body: string | (() => Readable)): string | Readable {
  return typeof body === 'function' ? body() : body;
}

/** A `fetch` sends a stream only with `duplex`. */
function webBody(body: Request['body']): RequestInit {
  if (typeof body !== 'function') return body === undefined ? {} : { body };
  return { body: Readable.toWeb(body()), duplex: 'half' } as RequestInit;
}

type Scenario = (send: (request: Omit<Request, 'url' | 'signal'>) => Promise<unknown>) => Promise<Observed>;

interface Exchange {
  readonly isEager?: boolean;
  readonly server: RequestListener;
  readonly scenario: Scenario;
}

/** `exchange` is called for each trial, so that each has a server and counts of its own. */
function trialsOf(exchange: () => Exchange): Readonly<Record<Name, Trial>> {
  const trialOf = (name: Name) => async () => {
    const { isEager = false, server: listener, scenario } = exchange();
    const server = createServer(listener).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const end = new AbortController();
    const client = clients[name](isEager);
    try {
      return await scenario((each) => client.send({ ...each, url, signal: end.signal }));
    } finally {
      // A library that still waits is stopped.
      end.abort();
      await client.close?.();
      server.closeAllConnections();
      server.close();
    }
  };
  return {
    holdfast: trialOf('holdfast'),
    'axios-retry': trialOf('axios-retry'),
    got: trialOf('got'),
    ky: trialOf('ky'),
    undici: trialOf('undici'),
  };
}

/** Whether the work ended, well or badly, in this time. */
function endsWithin(ms: number, work: Promise<unknown>): Promise<boolean> {
  const ended = work.then(
    () => true,
    () => true,
  );
  return Promise.race([ended, pause(ms, false, { ref: true })]);
}

const PATIENT_MS = 5000;

const claims: readonly Claim<Name>[] = [
  {
    id: 'post-once',
    sentence: 'A POST without a key whose connection was reset after it was executed is not sent again',
    how: 'The server reads the request, counts it and cuts the connection.',
    trials: trialsOf(() => {
      let executions = 0;
      return {
        server(message, response) {
          message.resume().on('end', () => {
            executions++;
            response.socket?.resetAndDestroy();
          });
        },
        async scenario(send) {
          if (!(await endsWithin(PATIENT_MS, send({ method: 'POST', body: 'pay 10 EUR' }))))
            throw new Error('The request did not end.');
          if (executions === 0) throw new Error('The request did not arrive.');
          return executions === 1;
        },
      };
    }),
  },
  {
    id: 'retry-after-a-day',
    sentence: '`Retry-After: 86400` is neither waited for nor undercut',
    how: 'A GET is answered with 503 and this header. Good is: one request, and an answer to the caller within 5 s. got and ky have `maxRetryAfter`, without a limit by default: above it got gives up, and ky comes back early.',
    trials: trialsOf(() => {
      let requests = 0;
      return {
        server(_, response) {
          requests++;
          response.writeHead(503, { 'retry-after': '86400' }).end();
        },
        async scenario(send) {
          const isEnded = await endsWithin(PATIENT_MS, send({ method: 'GET' }));
          return isEnded && requests === 1;
        },
      };
    }),
  },
  {
    id: 'whole-stream',
    sentence: 'A streamed body is never sent again empty or cut',
    how: 'A PUT of 200 kB from a stream is answered with 503 the first time. Good is: every request that arrives is whole. It may be one.',
    trials: trialsOf(() => {
      const chunk = 'x'.repeat(20_000);
      const bodies: { bytes: number }[] = [];
      return {
        server(message, response) {
          const body = { bytes: 0 };
          bodies.push(body);
          message.on('data', (data: Buffer) => {
            body.bytes += data.length;
          });
          message.on('end', () => response.writeHead(bodies.length === 1 ? 503 : 200).end());
        },
        async scenario(send) {
          const stream = () => Readable.from(Array.from({ length: 10 }, () => Buffer.from(chunk)));
          await endsWithin(PATIENT_MS, send({ method: 'PUT', body: stream }));
          if (bodies[0]?.bytes !== 200_000) throw new Error('The first request was not whole.');
          return bodies.every(({ bytes }) => bytes === 200_000);
        },
      };
    }),
  },
  {
    id: 'outage-requests',
    sentence: 'Requests to a server that is down, for each GET',
    how: 'Two hundred GETs one after the other, each answered with 503, with defaults but for waits that are as short as the library allows. Less is better. Holdfast has a breaker and refuses most of these GETs without a request.',
    atMost: 1.1,
    trials: trialsOf(() => {
      let requests = 0;
      const gets = 200;
      return {
        isEager: true,
        server(_, response) {
          requests++;
          response.writeHead(503).end();
        },
        async scenario(send) {
          for (let n = 0; n < gets; n++) await send({ method: 'GET' }).catch(() => {});
          return requests / gets;
        },
      };
    }),
  },
];

export const http: Theme<Name> = {
  name: 'http',
  file: 'http.ts',
  isInTurn: false,
  contestants: {
    holdfast: { label: 'Holdfast `createFetch`', packages: [] },
    'axios-retry': { label: 'axios-retry', packages: ['axios', 'axios-retry'] },
    got: { label: 'got', packages: ['got'] },
    ky: { label: 'ky', packages: ['ky'] },
    undici: { label: 'undici `RetryAgent`', packages: ['undici'] },
  },
  claims,
};

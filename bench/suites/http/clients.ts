import './one-undici.ts';
import { createFetch, retryInterceptor } from '@holdfast/http';
import axios from 'axios';
import axiosRetry from 'axios-retry';
import got from 'got';
import ky from 'ky';
import { Agent, RetryAgent, request, fetch as undiciFetch } from 'undici';
import type { Case, Loop } from '../../harness.ts';

const CONCURRENCY = 64;

/** Sends `times` requests, 64 at a time: each of 64 senders begins the next when its last is answered. */
function spread(send: () => Promise<unknown>): Loop {
  return async (times) => {
    let left = times;
    const sender = async () => {
      while (left-- > 0) await send();
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, sender));
  };
}

/** Nobody gives up an attempt here because the machine is busy with something else. */
const policy = { attemptTimeout: '5s' } as const;

/** Every contestant has its own connections, as many as it has senders. */
function agent(): Agent {
  return new Agent({ connections: CONCURRENCY });
}

export function httpCases(origin: string): Case[] {
  const plain = agent();
  const ours = agent().compose(retryInterceptor(policy));
  const retrying = new RetryAgent(agent());
  const fetchPlain = agent();
  const fetchOurs = createFetch({
    policy,
    fetch: undiciFetch as unknown as typeof fetch,
    dispatcher: agent(),
  });
  const kyClient = ky.create();
  const axiosClient = axios.create({ adapter: 'fetch' });
  axiosRetry(axiosClient, { retries: 3 });
  const gotClient = got.extend({ retry: { limit: 3 } });

  return [
    {
      case: 'interceptor',
      unit: 'ns',
      better: 'lower',
      bars: [{ toFloorMax: 1.1 }, { aheadOf: 'undici RetryAgent', times: 1 }],
      floor: spread(async () => (await request(origin, { dispatcher: plain })).body.text()),
      ours: spread(async () => (await request(origin, { dispatcher: ours })).body.text()),
      peers: {
        'undici RetryAgent': spread(async () =>
          (await request(origin, { dispatcher: retrying })).body.text(),
        ),
      },
    },
    {
      case: 'fetch',
      unit: 'ns',
      better: 'lower',
      bars: [
        { toFloorMax: 1.08 },
        { aheadOf: 'ky', times: 1 },
        { aheadOf: 'got', times: 1 },
        { aheadOf: 'axios + axios-retry', times: 1 },
      ],
      floor: spread(async () => (await undiciFetch(origin, { dispatcher: fetchPlain })).text()),
      ours: spread(async () => (await fetchOurs(origin)).text()),
      peers: {
        ky: spread(() => kyClient(origin).text()),
        got: spread(() => gotClient(origin).text()),
        'axios + axios-retry': spread(() => axiosClient.get(origin)),
      },
    },
  ];
}

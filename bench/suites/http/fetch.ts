import './one-undici.ts';
import { createFetch } from '@holdfast/http';
import axios from 'axios';
import axiosRetry from 'axios-retry';
import got from 'got';
import ky from 'ky';
import { fetch as undiciFetch } from 'undici';
import type { Case } from '../../harness.ts';
import { agent, policy, spread } from './load.ts';

export function fetchCase(origin: string): Case {
  const dispatcher = agent();
  const ours = createFetch({
    policy,
    fetch: undiciFetch,
    dispatcher: agent(),
  });
  const kyClient = ky.create();
  const axiosClient = axios.create({ adapter: 'fetch' });
  axiosRetry(axiosClient, { retries: 3 });
  const gotClient = got.extend({ retry: { limit: 3 } });
  return {
    case: 'fetch',
    unit: 'ns',
    better: 'lower',
    bars: [
      { toFloorMax: 1.08 },
      { aheadOf: 'ky', times: 1 },
      { aheadOf: 'got', times: 1 },
      { aheadOf: 'axios + axios-retry', times: 1 },
    ],
    floor: spread(async () => (await undiciFetch(origin, { dispatcher })).text()),
    ours: spread(async () => (await ours(origin)).text()),
    peers: {
      ky: spread(() => kyClient(origin).text()),
      got: spread(() => gotClient(origin).text()),
      'axios + axios-retry': spread(() => axiosClient.get(origin)),
    },
  };
}

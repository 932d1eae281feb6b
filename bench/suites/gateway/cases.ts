import type { Bar } from '../../compare.ts';

/** A kind of request, as wrk sends it. */
export interface Request {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly bodyBytes: number;
}

export interface GatewayCase {
  readonly name: string;
  readonly request: Request;
  readonly bars: readonly Bar[];
  /** The contestants besides the floor and ours: peers for Node, native proxies, and ours with more switched on. */
  readonly peers: readonly string[];
  readonly natives: readonly string[];
  readonly extras: readonly string[];
}

const peers = ['fast-proxy', 'http-proxy-3', '@fastify/http-proxy'];
const natives = ['nginx', 'haproxy', 'envoy'];
const bars: readonly Bar[] = [{ toFloorMax: 1.3 }, ...peers.map((aheadOf) => ({ aheadOf, times: 1 }))];

/** The upstream answers with 100 bytes, unless the path asks for 16 KiB. */
export const gatewayCases: readonly GatewayCase[] = [
  {
    name: 'gateway GET',
    request: { method: 'GET', path: '/small', bodyBytes: 0 },
    bars,
    peers,
    natives,
    extras: ['access log', 'Server-Timing', 'spans'],
  },
  {
    name: 'gateway POST',
    request: { method: 'POST', path: '/small', bodyBytes: 1024 },
    bars,
    peers,
    natives,
    extras: [],
  },
  {
    name: 'gateway 16k',
    request: { method: 'GET', path: '/large', bodyBytes: 0 },
    bars,
    peers,
    natives,
    extras: [],
  },
];

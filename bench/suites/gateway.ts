import { findWrk, wrk } from '../../scripts/wrk.ts';
import { type CaseResult, compare, type Samples } from '../compare.ts';
import { orderOf, type TimedResult } from '../harness.ts';
import type { Suite } from '../suite.ts';
import { type GatewayCase, gatewayCases, type Request } from './gateway/cases.ts';
import { type Contestant, otherCore, startContestant, startUpstream } from './gateway/contestant.ts';
import { coreWords } from './gateway/processors.ts';

const ROUNDS = 12;
/** Each sitting starts all processes anew: two processes of one program differ for as long as they live. */
const SITTINGS = 3;
const CONNECTIONS = 32;
const ROUND_SECONDS = 1;
const WARM_UP_SECONDS = 3;

type Figures = Map<string, { readonly cpu: number[]; readonly wall: number[] }>;

/**
 * What a request costs a proxy. Each proxy is a process with a processor of its own; wrk and the upstream share the other.
 * In a round one proxy after the other is asked, and figures are compared within the round.
 */
export const suite: Suite = {
  async run({ rounds = ROUNDS, caseContains }) {
    const found = findWrk();
    if ('missing' in found) throw new Error(`This suite needs wrk: ${found.missing}.`);
    const results: CaseResult[] = [];
    for (const each of gatewayCases) {
      if (!each.name.includes(caseContains)) continue;
      const figures: Figures = new Map();
      for (let sitting = 0; sitting < Math.min(SITTINGS, rounds); sitting++) {
        const part = Math.ceil((rounds - sitting) / SITTINGS);
        console.error(`${each.name}, sitting ${sitting + 1} …`);
        await sit(each, found.program, part, figures);
      }
      results.push(...resultsOf(each, figures));
    }
    return results;
  },
  notes: [
    'ns: processor time of the proxy for a request, all its threads; wall: one second divided by the requests in it. wrk with 32 connections;',
    'the proxy has one processor, wrk and the upstream (node:http) share the other. Processes are started anew twice.',
    'floor: node:http → undici, nothing looked at. holdfast: all protections on, log and tracing off. Native proxies are ceilings, not peers:',
    'their throughput is limited by wrk and the upstream, so their processor time says more.',
  ],
};

async function sit(
  { request, peers, natives, extras }: GatewayCase,
  program: string,
  rounds: number,
  figures: Figures,
): Promise<void> {
  using started = new DisposableStack();
  const upstream = started.use(await startUpstream());
  const contestants: Contestant[] = [];
  for (const name of ['floor', 'ours', ...peers, ...natives, ...extras]) {
    const contestant = await startContestant(name, upstream.url);
    if (typeof contestant === 'string') console.error(`Without ${name}: ${contestant}.`);
    else contestants.push(started.use(contestant));
  }
  const load = async ({ name, port }: Contestant, seconds: number) => {
    const result = await wrk(program, {
      url: `http://127.0.0.1:${port}${request.path}`,
      connections: CONNECTIONS,
      seconds,
      script: scriptOf(request),
      before: coreWords(otherCore),
    });
    if (result.bad > 0 || result.socketErrors > 0)
      throw new Error(`${name} failed ${result.bad} requests and ${result.socketErrors} connections.`);
    return result;
  };
  for (const contestant of contestants) await load(contestant, WARM_UP_SECONDS);
  for (let round = 0; round < rounds; round++) {
    for (const contestant of orderOf(contestants, round)) {
      const before = contestant.cpuNs();
      const { requests, seconds } = await load(contestant, ROUND_SECONDS);
      const figure = figures.get(contestant.name) ?? { cpu: [], wall: [] };
      figure.cpu.push((contestant.cpuNs() - before) / requests);
      figure.wall.push((seconds * 1e9) / requests);
      figures.set(contestant.name, figure);
    }
  }
}

function scriptOf({ method, bodyBytes }: Request): string {
  const body = `wrk.body = string.rep("x", ${bodyBytes})\nwrk.headers["content-type"] = "application/json"`;
  return `wrk.method = "${method}"\n${bodyBytes > 0 ? body : ''}`;
}

/** One table for the peers and their bars; the native proxies and what telemetry costs have tables of their own. */
function resultsOf({ name, bars, peers, natives, extras }: GatewayCase, figures: Figures): TimedResult[] {
  const table = (title: string, names: readonly string[], own: GatewayCase['bars']): TimedResult => {
    const measured = names.filter((each) => figures.has(each));
    const samples = (figure: 'cpu' | 'wall'): Samples => ({
      floor: figures.get('floor')![figure],
      ours: figures.get('ours')![figure],
      peers: Object.fromEntries(measured.map((each) => [each, figures.get(each)![figure]])),
    });
    const subject = { case: title, unit: 'ns', better: 'lower' } as const;
    const { ours, floor, peers: others, toFloor, toBestPeer } = compare(subject, samples('wall'));
    return {
      ...compare({ ...subject, bars: own }, samples('cpu')),
      wall: { ours, floor, peers: others, toFloor, toBestPeer },
    };
  };
  return [
    table(name, peers, bars),
    table(`${name}, native proxies`, natives, []),
    ...(extras.length > 0 ? [table(`${name}, with telemetry`, extras, [])] : []),
  ];
}

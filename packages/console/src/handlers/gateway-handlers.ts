import { subject } from '@holdfast/contracts';
import type { gatewayRoutes } from '../api/parts.ts';
import type { ConsoleEngine, GatewayPart } from '../console-options.ts';
import type { Handlers } from '../server/handler.ts';
import { Problem } from '../server/problem.ts';

export interface GatewaySettings {
  readonly engine: ConsoleEngine;
  readonly part: GatewayPart | undefined;
}

type Json = Record<string, unknown>;

/**
 * Forwards requests to the admin API of a gateway. A request that changes something is first written to the
 * audit log.
 */
export function gatewayHandlers({ engine, part }: GatewaySettings): Handlers<keyof typeof gatewayRoutes> {
  async function ask(method: 'GET' | 'POST', path: string, body?: unknown): Promise<Json> {
    if (!part) throw new Problem('feature-missing', 'This console was started without a gateway.');
    const answer = await part.ask(method, path, body).catch((error: unknown) => {
      throw new Problem('store-away', `The gateway does not answer: ${(error as Error).message}.`, {}, 2);
    });
    if (answer.status < 300) return answer.body as Json;
    const said = (answer.body as { error?: string } | undefined)?.error ?? `it answered ${answer.status}`;
    const kind = answer.status === 404 ? 'unknown' : answer.status < 500 ? 'does-not-fit' : 'store-away';
    throw new Problem(kind, `The gateway says: ${said}.`, { gateway: answer.body });
  }

  async function acted(
    what: string,
    about: string,
    act: { readonly who: string; readonly why: string },
    path: string,
    body: unknown = {},
  ): Promise<Json> {
    await engine.audit.record({ ...act, what: `gateway_${what}`, subjects: [subject('gateway', about)] });
    return ask('POST', path, body);
  }

  const instancePath = (upstream: string, instance: string, word: string) =>
    `/upstreams/${encodeURIComponent(upstream)}/instances/${encodeURIComponent(instance)}/${word}`;

  return {
    async 'GET /gateway'() {
      return { state: await ask('GET', '/state'), config: await ask('GET', '/config') };
    },
    async 'GET /gateway/requests'() {
      const { stories } = await ask('GET', '/stories?count=100');
      return { stories: stories as Json[] };
    },
    'GET /gateway/requests/:id'({ path: { id } }) {
      return ask('GET', `/stories/${encodeURIComponent(id)}`);
    },
    'POST /gateway/upstreams/:upstream/:instance/drain'(
      { path: { upstream, instance }, body: { why } },
      { act },
    ) {
      return acted('drain', `${upstream}/${instance}`, act(why), instancePath(upstream, instance, 'drain'));
    },
    'POST /gateway/upstreams/:upstream/:instance/resume'(
      { path: { upstream, instance }, body: { why } },
      { act },
    ) {
      return acted('resume', `${upstream}/${instance}`, act(why), instancePath(upstream, instance, 'resume'));
    },
    'POST /gateway/breakers'({ body: { policy, target, to, why } }, { act }) {
      const body = { policy, ...(target !== undefined && { target }), state: to, because: why };
      return acted('breaker', policy, act(why), '/breakers', body);
    },
    'POST /gateway/reload'({ body: { why } }, { act }) {
      return acted('reload', 'file', act(why), '/reload');
    },
  };
}

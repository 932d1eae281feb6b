import { timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hardenedServer } from '@holdfast/server';
import { contentTypes } from '@holdfast/telemetry';
import { isDocument, nearest } from 'holdfast/fields';
import type { AdminConfig } from '../file/gateway-config.ts';
import type { Answers, Command } from './control.ts';
import { gatewayMetrics } from './gateway-metrics.ts';
import { openApi } from './openapi.ts';
import type { WorkerState } from './worker-state.ts';

/** Whether a reload took effect, or why the new file was refused. */
export interface ReloadResult {
  readonly ok: boolean;
  /** The time of the reload, epoch ms. */
  readonly at: number;
  /** The files that are in use, the main file first. The file that `policyFile` names is one of them. */
  readonly files: readonly string[];
  /** False: the files say the same as before, or the reload was refused. */
  readonly isChanged: boolean;
  /** Why the file was rejected, with line numbers. The configuration from before the reload stays in use. */
  readonly error?: string;
  readonly problems?: readonly {
    readonly file: string;
    readonly line: number;
    readonly column: number;
    readonly path: string;
    readonly message: string;
  }[];
}

/** The gateway as the admin API sees it: one process, or several workers. */
export interface GatewayControl {
  ask<K extends Command['kind']>(command: Extract<Command, { kind: K }>): Promise<readonly Answers[K][]>;
  reload(): Promise<ReloadResult>;
  restart(): Promise<void>;
  readonly lastReload: ReloadResult | null;
  /** How many workers ended unexpectedly and were replaced. */
  readonly workersLost: number;
  readonly isDraining: boolean;
  readonly shownConfig: unknown;
}

const bodyMax = 65_536;
const storiesShown = 100;

interface Answer {
  readonly status: number;
  readonly body: unknown;
  readonly type?: string;
}

type Handler = (control: GatewayControl, request: AdminRequest) => Promise<Answer> | Answer;

interface AdminRequest {
  /** The values of the path segments in braces, such as `{id}`. */
  readonly parameters: readonly string[];
  readonly query: URLSearchParams;
  readonly body: Readonly<Record<string, unknown>>;
}

const notFound: Answer = { status: 404, body: { error: 'there is no such thing here' } };

const handlers: Readonly<Record<string, Handler>> = {
  'GET /livez': () => ({ status: 200, body: { status: 'pass' } }),
  'GET /readyz': ({ isDraining }) =>
    isDraining ? { status: 503, body: { status: 'fail' } } : { status: 200, body: { status: 'pass' } },
  'GET /openapi.json': () => ({ status: 200, body: openApi }),
  'GET /state': async (control) => {
    const workers = await control.ask<'state'>({ kind: 'state' });
    return {
      status: 200,
      body: {
        isDraining: control.isDraining,
        lastReload: control.lastReload,
        workersLost: control.workersLost,
        workers,
      },
    };
  },
  'GET /config': ({ shownConfig }) => ({ status: 200, body: shownConfig }),
  'GET /metrics': async (control) => ({
    status: 200,
    body: gatewayMetrics(await control.ask<'state'>({ kind: 'state' }), control.workersLost),
    type: contentTypes.text,
  }),
  'GET /stories': async (control, { query }) => {
    const given = Number(query.get('count') ?? storiesShown);
    const count = Number.isInteger(given) && given > 0 ? Math.min(given, 1000) : storiesShown;
    const all = (await control.ask<'stories'>({ kind: 'stories', count })).flat();
    const latest = all.sort((a, b) => b.time.localeCompare(a.time)).slice(0, count);
    return { status: 200, body: { stories: latest } };
  },
  'GET /stories/{id}': async (control, { parameters }) => {
    const found = (await control.ask<'story'>({ kind: 'story', id: parameters[0]! })).find(
      (each) => each !== null,
    );
    return found ? { status: 200, body: found } : notFound;
  },
  'POST /breakers': async (control, { body }) => {
    const { policy, target, state, because } = body;
    if (typeof policy !== 'string' || (target !== undefined && typeof target !== 'string'))
      return wrong('policy and target are texts; target may be left out');
    if (state !== 'open' && state !== 'closed' && state !== 'auto')
      return wrong(`state: expected open, closed or auto, got ${JSON.stringify(state)}`);
    if (because !== undefined && typeof because !== 'string') return wrong('because is a text');
    const counts = await control.ask<'breaker'>({ kind: 'breaker', policy, target, state, because });
    const breakers = counts.reduce((sum, each) => sum + each, 0);
    if (breakers > 0) return { status: 200, body: { breakers } };
    const error = noBreaker(policy, target, await control.ask<'state'>({ kind: 'state' }));
    return { status: 404, body: { error } };
  },
  'POST /upstreams/{upstream}/instances/{instance}/drain': (control, request) =>
    drain(control, request, true),
  'POST /upstreams/{upstream}/instances/{instance}/resume': (control, request) =>
    drain(control, request, false),
  'POST /reload': async (control) => {
    const result = await control.reload();
    return { status: result.ok ? 200 : 422, body: result };
  },
  'POST /restart': async (control) => {
    try {
      await control.restart();
      return { status: 200, body: { restarted: true } };
    } catch (error) {
      return { status: 409, body: { error: (error as Error).message } };
    }
  },
};

const open = new Set(['GET /livez', 'GET /readyz']);

async function drain(
  control: GatewayControl,
  { parameters }: AdminRequest,
  isDraining: boolean,
): Promise<Answer> {
  const [upstream = '', instance = ''] = parameters;
  const found = await control.ask<'drain'>({ kind: 'drain', upstream, instance, isDraining });
  if (!found.some(Boolean)) return notFound;
  const workers = await control.ask<'state'>({ kind: 'state' });
  const states = workers[0]?.upstreams.find(({ name }) => name === upstream)?.instances ?? [];
  const serving = states.filter((each) => !each.isDraining).length;
  return { status: 200, body: { upstream, instance, isDraining, serving } };
}

/** Says why no breaker was found: the name, the instance, or that the file has no `circuitBreaker`. */
function noBreaker(policy: string, target: string | undefined, workers: readonly WorkerState[]): string {
  const upstreams = workers.flatMap((worker) => worker.upstreams);
  const named = upstreams.filter(
    ({ name, policies }) => name === policy || policies.some((each) => each.name === policy),
  );
  if (named.length === 0) {
    const names = upstreams.flatMap(({ name, policies }) => [name, ...policies.map((each) => each.name)]);
    const near = nearest(policy, [...new Set(names)]);
    const meant = near === undefined ? '' : `; did you mean ${JSON.stringify(near)}?`;
    return `there is no upstream or policy ${policy}${meant}`;
  }
  const instances = named.flatMap((each) => each.instances.map(({ name }) => name));
  if (target !== undefined && !instances.includes(target)) {
    const near = nearest(target, [...new Set(instances)]);
    return `${policy} has no instance ${target}${near === undefined ? '' : `; did you mean ${JSON.stringify(near)}?`}`;
  }
  return `${policy} has no breaker: its part of the file has no circuitBreaker`;
}

function wrong(error: string): Answer {
  return { status: 400, body: { error } };
}

export class AdminServer {
  readonly token: string;
  readonly #control: GatewayControl;
  readonly #server: Server;
  readonly #config: AdminConfig;

  constructor(config: AdminConfig, token: string, control: GatewayControl) {
    this.#config = config;
    this.token = token;
    this.#control = control;
    this.#server = createServer(hardenedServer, (request, response) => {
      this.#handle(request).then(
        ({ status, body, type = 'application/json' }) => send(response, status, body, type),
        (error: unknown) => send(response, 500, { error: String(error) }, 'application/json'),
      );
    });
  }

  get address(): AddressInfo {
    return this.#server.address() as AddressInfo;
  }

  listen(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(this.#config.port, this.#config.host, resolve);
    });
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  async #handle(request: IncomingMessage): Promise<Answer> {
    const { method = '', url = '/' } = request;
    const parsed = URL.parse(url, 'http://admin');
    const found = parsed && findHandler(method, parsed.pathname);
    const isOpen = found && open.has(found.key);
    if (!isOpen && !this.#isAllowed(request)) return { status: 401, body: { error: 'a token is needed' } };
    if (!parsed || !found) return notFound;
    const body = method === 'POST' ? await readJson(request) : {};
    if (body === undefined) return wrong('the body is not a JSON object of at most 64 KiB');
    return found.handler(this.#control, { parameters: found.parameters, query: parsed.searchParams, body });
  }

  #isAllowed({ headers }: IncomingMessage): boolean {
    const given = Buffer.from(/^Bearer (.+)$/i.exec(headers.authorization ?? '')?.[1] ?? '');
    const wanted = Buffer.from(this.token);
    // `timingSafeEqual` compares all bytes, so its duration does not reveal how much of the token is right.
    return given.length === wanted.length && timingSafeEqual(given, wanted);
  }
}

function findHandler(
  method: string,
  path: string,
): { key: string; handler: Handler; parameters: string[] } | undefined {
  const given = path.split('/');
  for (const [key, handler] of Object.entries(handlers)) {
    const [wantedMethod, template = ''] = key.split(' ');
    const wanted = template.split('/');
    if (wantedMethod !== method || wanted.length !== given.length) continue;
    const parameters: string[] = [];
    const fits = wanted.every((part, index) => {
      if (!part.startsWith('{')) return part === given[index];
      const decoded = decode(given[index]!);
      if (decoded !== undefined) parameters.push(decoded);
      return decoded !== undefined;
    });
    if (fits) return { key, handler, parameters };
  }
  return undefined;
}

function decode(part: string): string | undefined {
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined;
  }
}

async function readJson(request: IncomingMessage): Promise<Record<string, unknown> | undefined> {
  let text = '';
  for await (const chunk of request) {
    text += chunk;
    if (text.length > bodyMax) return undefined;
  }
  if (text === '') return {};
  try {
    const parsed: unknown = JSON.parse(text);
    return isDocument(parsed) ? (parsed as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

function send(response: ServerResponse, status: number, body: unknown, type: string): void {
  const text = typeof body === 'string' ? body : `${JSON.stringify(body, shown, 2)}\n`;
  response.writeHead(status, {
    'content-type': type,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...(status === 401 && { 'www-authenticate': 'Bearer' }),
  });
  response.end(text);
}

/** A replacer for `JSON.stringify`, because JSON has no Infinity. */
function shown(_key: string, value: unknown): unknown {
  return value === Infinity ? 'unlimited' : value;
}

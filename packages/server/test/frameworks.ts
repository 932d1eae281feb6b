import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { serve as serveFetch } from '@hono/node-server';
import express from 'express';
import fastify from 'fastify';
import { Hono } from 'hono';
import { guard as guardExpress, sendResponse } from '../src/express.ts';
import { guard as guardFastify } from '../src/fastify.ts';
import { guard as guardHono } from '../src/hono.ts';
import {
  contextOf,
  guardWeb,
  type Part,
  type PlainResponse,
  type RequestContext,
  toResponse,
} from '../src/index.ts';
import { guard as guardNode } from '../src/node.ts';

/** What a handler of any framework is told here. */
export interface Call {
  readonly method: string;
  readonly url: string;
  readonly body: string;
  readonly context: RequestContext;
}

export type Handler = (call: Call) => PlainResponse | Promise<PlainResponse>;

export interface Running extends AsyncDisposable {
  readonly origin: string;
  readonly port: number;
  readonly server: Server;
}

export interface Framework {
  readonly name: string;
  serve(parts: readonly Part[], handler: Handler, options?: ServerOptions): Promise<Running>;
}

/** Every adapter, each with a server of its framework on a real socket, answering with one handler. */
export const frameworks: readonly Framework[] = [
  {
    name: 'node:http',
    serve: (parts, handler, options = {}) =>
      listen(
        createServer(
          options,
          guardNode(parts, async (request: IncomingMessage, response: ServerResponse) => {
            const { method = '', url = '' } = request;
            const context = contextOf(request)!;
            try {
              const body = await text(request);
              sendResponse(response, await handler({ method, url, body, context }));
            } catch (error) {
              sendResponse(response, failure(error));
            }
          }),
        ),
      ),
  },
  {
    name: 'Express',
    serve(parts, handler, options = {}) {
      const app = express();
      app.use(guardExpress(parts));
      app.use(express.text({ type: () => true, limit: '2mb' }));
      app.all('/{*path}', async (request, response) => {
        const { method, originalUrl: url } = request;
        const body = typeof request.body === 'string' ? request.body : '';
        const answer = await handler({ method, url, body, context: contextOf(request)! });
        const sent = response.status(answer.status).set(answer.headers as Record<string, string>);
        if (answer.body === null) sent.end();
        else sent.send(answer.body);
      });
      app.use(((error, _request, response, _next) => {
        response.status(500).type('text').send(String(error));
      }) as express.ErrorRequestHandler);
      return listen(createServer(options, app));
    },
  },
  {
    name: 'Fastify',
    async serve(parts, handler, options = {}) {
      const app = fastify({ http: options });
      app.register(guardFastify, { parts });
      app.removeAllContentTypeParsers();
      app.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body));
      app.all('/*', async (request, reply) => {
        const { method, url } = request;
        const body = (request.body as string | undefined) ?? '';
        const answer = await handler({ method, url, body, context: contextOf(request)! });
        return reply
          .code(answer.status)
          .headers(answer.headers as Record<string, string>)
          .send(answer.body ?? '');
      });
      await app.listen({ port: 0, host: '127.0.0.1' });
      return running(app.server, () => {
        app.server.closeAllConnections();
        return app.close();
      });
    },
  },
  {
    name: 'Hono',
    serve(parts, handler, options) {
      const app = new Hono();
      app.use(guardHono(parts));
      app.all('*', async (c) => {
        const { method } = c.req;
        const { pathname, search } = new URL(c.req.url);
        const body = await c.req.text();
        return toResponse(await handler({ method, url: pathname + search, body, context: contextOf(c)! }));
      });
      app.onError((error) => toResponse(failure(error)));
      return fetchServer(app.fetch, options);
    },
  },
  {
    name: 'fetch',
    serve(parts, handler, options) {
      const guarded = guardWeb(parts, async (request, context) => {
        const { pathname, search } = new URL(request.url);
        const { method } = request;
        try {
          return toResponse(
            await handler({ method, url: pathname + search, body: await request.text(), context }),
          );
        } catch (error) {
          return toResponse(failure(error));
        }
      });
      return fetchServer(
        (request, env) =>
          guarded(request, {
            peer: (env as { incoming: IncomingMessage }).incoming.socket.remoteAddress ?? '',
          }),
        options,
      );
    },
  },
];

/** The one to use where the framework makes no difference. */
export const plain: Framework = frameworks[0]!;

/** A short answer. */
export function reply(status: number, body = '', headers: PlainResponse['headers'] = {}): PlainResponse {
  return { status, headers: { 'content-type': 'text/plain', ...headers }, body };
}

export async function listen(server: Server): Promise<Running> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return running(server, () => closed(server));
}

function fetchServer(
  fetch: (request: Request, env: unknown) => Response | Promise<Response>,
  serverOptions: ServerOptions = {},
): Promise<Running> {
  return new Promise((resolve) => {
    const server = serveFetch({ fetch, port: 0, hostname: '127.0.0.1', serverOptions }, () =>
      resolve(running(server as Server, () => closed(server as Server))),
    ) as Server;
  });
}

function running(server: Server, close: () => Promise<unknown>): Running {
  const { port } = server.address() as AddressInfo;
  return {
    server,
    port,
    origin: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      await close();
    },
  };
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

async function text(request: IncomingMessage): Promise<string> {
  let all = '';
  for await (const chunk of request) all += chunk;
  return all;
}

function failure(error: unknown): PlainResponse {
  return reply(500, String(error));
}

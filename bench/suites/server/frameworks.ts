import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { serve } from '@hono/node-server';
import express, { type RequestHandler } from 'express';
import fastify, { type FastifyInstance } from 'fastify';
import { Hono, type MiddlewareHandler } from 'hono';

/** Connections rest while others have their turn, as long as Fastify keeps them by default. */
const KEPT_OPEN_MS = 72_000;

/** The same route everywhere. Each starts a server on a free port. */
const order = { id: 17, status: 'placed', items: ['book'] };

export async function fastifyServer(
  prepare: (app: FastifyInstance) => unknown,
  behindBreaker = false,
): Promise<number> {
  const app = fastify();
  await prepare(app);
  app.after(() => {
    const options = behindBreaker ? { preHandler: app.circuitBreaker() } : {};
    app.get('/orders', options, (_request, reply) => {
      reply.send(order);
    });
    app.post('/orders', (_request, reply) => {
      reply.code(201).send(order);
    });
  });
  await app.listen({ port: 0, host: '127.0.0.1' });
  return (app.server.address() as AddressInfo).port;
}

export async function expressServer(middleware: readonly RequestHandler[]): Promise<number> {
  const app = express();
  for (const each of middleware) app.use(each);
  app.get('/orders', (_request, response) => {
    response.json(order);
  });
  const server = createServer({ keepAliveTimeout: KEPT_OPEN_MS }, app);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

export async function honoServer(middleware: readonly MiddlewareHandler[]): Promise<number> {
  const app = new Hono();
  for (const each of middleware) app.use(each);
  app.get('/orders', (c) => c.json(order));
  return new Promise((resolve) => {
    const serverOptions = { keepAliveTimeout: KEPT_OPEN_MS };
    serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1', serverOptions }, ({ port }) => resolve(port));
  });
}

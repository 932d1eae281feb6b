import { Hono } from 'hono';
import type { Route } from '../api/route.ts';
import { type RouteName, routes } from '../api/routes.ts';
import { AnswerMemory } from './answer-memory.ts';
import type { Handler, HandlerContext, Handlers } from './handler.ts';
import { openApi } from './openapi.ts';
import { Problem } from './problem.ts';
import { problemOf } from './problem-of.ts';
import { assertHost, assertOrigin, readJson, securityHeaders } from './request-checks.ts';
import type { Session, Sessions } from './sessions.ts';
import type { StaticFiles } from './static-files.ts';

export interface AppSettings {
  readonly sessions: Sessions;
  readonly handlers: Handlers;
  readonly files: StaticFiles;
  /** The documentation, below the path `/help/`. */
  readonly help: StaticFiles;
  /** The allowed host names. Requests to other host names are refused. */
  readonly hosts: ReadonlySet<string>;
  readonly isSecure: boolean;
  readonly version: string;
  onError(error: unknown): void;
  onRefused(context: { readonly who: string; readonly route: string; readonly problem: Problem }): void;
}

interface Bindings {
  /** The connection, as `@hono/node-server` passes it on. */
  readonly incoming?: { readonly socket?: { readonly remoteAddress?: string } };
}

const prefix = '/api/v1';
const unsafe = new Set(['POST', 'PUT', 'PATCH', 'DELETE']);

/** Browsers accept the prefix `__Host-` only over TLS. */
export function cookieName(isSecure: boolean): string {
  return isSecure ? '__Host-holdfast-console' : 'holdfast-console';
}

export function consoleApp(settings: AppSettings): Hono<{ Bindings: Bindings }> {
  const { sessions, handlers, files, help, hosts, version, isSecure } = settings;
  const app = new Hono<{ Bindings: Bindings }>();
  const memory = new AnswerMemory();
  const document = JSON.stringify(openApi(version));

  app.use(async (context, next) => {
    try {
      assertHost(context.req.raw, hosts);
      if (unsafe.has(context.req.method)) assertOrigin(context.req.raw);
      await next();
    } catch (error) {
      context.res = answerOf(error);
    }
    for (const [name, value] of Object.entries(securityHeaders)) context.res.headers.set(name, value);
    if (context.req.path.startsWith('/api/')) context.res.headers.set('cache-control', 'no-store');
  });

  app.get(`${prefix}/openapi.json`, (context) =>
    context.body(document, 200, { 'content-type': 'application/json' }),
  );

  for (const [name, route] of Object.entries(routes)) {
    const [method = '', path = ''] = name.split(' ');
    app.on(method, prefix + path, async (context) => {
      const address = context.env?.incoming?.socket?.remoteAddress ?? 'unknown';
      try {
        return await answer(name as RouteName, route as Route, context.req.raw, context.req.param(), address);
      } catch (error) {
        return answerOf(error);
      }
    });
  }

  app.all(`${prefix}/*`, (context) => {
    const known = methodsOf(context.req.path.slice(prefix.length));
    const says = `${context.req.method} ${context.req.path.slice(0, 200)} is not a route`;
    if (known.length === 0) return new Problem('unknown', `${says}.`).toResponse();
    const refused = new Problem('method', `${says}; this path has ${known.join(', ')}.`).toResponse();
    refused.headers.set('allow', known.join(', '));
    return refused;
  });

  app.on(['GET', 'HEAD'], '/help/*', (context) => {
    const { pathname } = new URL(context.req.url);
    const place = pathname.slice('/help'.length);
    // Help pages have relative links, so the URL of a folder must end with a slash.
    if (place === '' || help.has(`${place}/index.html`)) return context.redirect(`${pathname}/`, 301);
    const file = place.endsWith('/') ? `${place}index.html` : place;
    const says = help.isEmpty
      ? 'The help is not built: npm run build makes it.'
      : `The help has no page ${place.slice(0, 200)}.`;
    return help.response(file, context.req.raw) ?? new Problem('unknown', says).toResponse();
  });
  app.on(['GET', 'HEAD'], '/*', (context) => {
    const { pathname } = new URL(context.req.url);
    const request = context.req.raw;
    // Every screen has its own URL. So a path without a file extension gets the page, which shows the screen.
    const isPage = !/\.\w+$/.test(pathname);
    return (
      files.response(pathname, request) ??
      (isPage ? files.response('/index.html', request) : undefined) ??
      new Problem('unknown', `There is no file ${pathname.slice(0, 200)}.`).toResponse()
    );
  });
  app.all('*', (context) =>
    new Problem('method', `${context.req.method} is not for this path.`).toResponse(),
  );

  async function answer(
    name: RouteName,
    route: Route,
    request: Request,
    parameters: Record<string, string>,
    address: string,
  ): Promise<Response> {
    const session = route.role === 'none' ? nobody : sessionOf(request, address);
    if (route.role === 'operate' && session.role !== 'operate') {
      const problem = new Problem('role', `${session.who} may look, and this needs the right to operate.`);
      settings.onRefused({ who: session.who, route: name, problem });
      throw problem;
    }
    const key = request.headers.get('idempotency-key') ?? undefined;
    const isAct = unsafe.has(request.method) && route.role === 'operate';
    const run = async () => {
      const question = {
        path: route.path.parse(parameters),
        query: route.query.parse(queryOf(request.url)),
        body: unsafe.has(request.method) ? route.body.parse(await readJson(request)) : undefined,
      };
      const context: HandlerContext = {
        ...{ session, request, address, idempotencyKey: key },
        act(why) {
          if (why === undefined) throw new Problem('no-reason', 'why: a reason is needed.');
          return { who: session.who, why };
        },
      };
      const handler = handlers[name] as unknown as Handler<RouteName>;
      const given = await handler(question as never, context);
      if (given instanceof Response) return given;
      return new Response(JSON.stringify(given), {
        status: route.status,
        headers: { 'content-type': 'application/json' },
      });
    };
    return isAct && key !== undefined ? memory.once(`${session.who} ${name} ${key}`, run) : run();
  }

  function sessionOf(request: Request, address: string): Session {
    const bearer = /^Bearer (.+)$/i.exec(request.headers.get('authorization') ?? '')?.[1];
    if (bearer !== undefined) return sessions.ofToken(bearer, address);
    const id = cookieOf(request, cookieName(isSecure));
    const session = id === undefined ? undefined : sessions.ofCookie(id);
    if (session) return session;
    throw new Problem('sign-in', id === undefined ? 'Nobody is signed in.' : 'The session has ended.');
  }

  function answerOf(error: unknown): Response {
    const problem = problemOf(error);
    if (problem.kind === 'failed') settings.onError(error);
    return problem.toResponse();
  }

  return app;
}

const nobody: Session = { who: 'nobody', role: 'view', endsAt: 0 };

/** A parameter that occurs several times becomes a list. */
function queryOf(url: string): Record<string, string | string[]> {
  const query: Record<string, string | string[]> = {};
  for (const [name, value] of new URL(url).searchParams) {
    const known = Object.hasOwn(query, name) ? query[name]! : undefined;
    query[name] = known === undefined ? value : [known, value].flat();
  }
  return query;
}

export function cookieOf(request: Request, name: string): string | undefined {
  for (const pair of (request.headers.get('cookie') ?? '').split(';')) {
    const [key, value] = pair.trim().split('=');
    if (key === name) return value;
  }
  return undefined;
}

/** The HTTP methods that routes have for this path; empty if no route has it. */
function methodsOf(path: string): string[] {
  return Object.keys(routes).flatMap((name) => {
    const [method = '', pattern = ''] = name.split(' ');
    const matches = new RegExp(`^${pattern.replace(/:\w+/g, '[^/]+')}$`).test(path);
    return matches ? method : [];
  });
}

import { assemblies } from '@holdfast/assembly';
import type { GatewayPart } from '@holdfast/console';
import { stormRunner } from '@holdfast/simulator';
import { type Command, type Given, UsageError } from '../command.ts';
import { askGateway } from '../gateway-admin.ts';
import { countOf, textOf } from '../given-values.ts';
import { storeFlag, withStore } from '../store.ts';
import type { Terminal } from '../terminal.ts';

export const consoleCommand: Command = {
  name: 'console',
  summary: 'serve the page for those who look after a store; it prints a link',
  flags: {
    ...storeFlag,
    port: { value: 'port', says: '7070 unless given; 0: any that is free' },
    host: { value: 'address', says: 'another address than 127.0.0.1; needs a token that you give' },
    name: {
      value: 'host name',
      many: true,
      says: 'a name under which the page is reached, beside localhost',
    },
    'operate-token': {
      value: 'token',
      says: 'at least 32 characters; HOLDFAST_CONSOLE_TOKEN unless given, or a new one',
    },
    'view-token': {
      value: 'token',
      says: 'who has it may only look; HOLDFAST_CONSOLE_VIEW_TOKEN unless given',
    },
    secure: { says: 'a server in front ends TLS: cookies are sent over https only' },
    redact: { value: 'field', many: true, says: 'cover the values of this field in payloads and headers' },
    admin: { value: 'URL', says: 'show the gateway with this admin API; HOLDFAST_GATEWAY unless given' },
    token: { value: 'token', says: 'the token of that API; HOLDFAST_GATEWAY_TOKEN unless given' },
  },
  examples: ['console --store orders.db', 'console --store postgres://db/shop --port 8080 --redact card'],
  run: (given, terminal) => {
    const port = portOf(given);
    return withStore(given, terminal, async (engine) => {
      const { openConsole } = await import('@holdfast/console');
      const token = textOf(given, 'operate-token') ?? terminal.env.HOLDFAST_CONSOLE_TOKEN;
      const viewToken = textOf(given, 'view-token') ?? terminal.env.HOLDFAST_CONSOLE_VIEW_TOKEN;
      const gateway = gatewayOf(given, terminal);
      const opened = await openConsole({
        ...{ engine, simulator: stormRunner(), storeName: nameOf(given, terminal) },
        ...{ redact: given.lists.redact ?? [], hosts: given.lists.name ?? [] },
        ...(engine.journal && { assemblies: assemblies({ engine, programs: [] }) }),
        ...(gateway && { gateway }),
        ...(token !== undefined && { token }),
        ...(viewToken !== undefined && { viewToken }),
        ...(given.flags.secure === true && { secure: true }),
        onError: (error) => terminal.err(`holdfast: ${(error as Error).message}`),
      });
      const host = textOf(given, 'host');
      try {
        const { url, link } = await opened.listen({
          ...(port !== undefined && { port }),
          ...(host !== undefined && { host }),
        });
        terminal.out(given.flags.json ? JSON.stringify({ url, link }) : link);
        if (!given.flags.json) terminal.err('Open this link. Ctrl-C ends the console; nothing else stops.');
        await interrupted(terminal.signal);
      } finally {
        await opened.close();
      }
      return 0;
    });
  },
};

function portOf(given: Given): number | undefined {
  const port = countOf(given, 'port', 0);
  if (port === undefined || port <= 65_535) return port;
  throw new UsageError(`--port: expected a number from 0 to 65535, got "${textOf(given, 'port')}".`);
}

function gatewayOf(given: Given, terminal: Terminal): GatewayPart | undefined {
  if (textOf(given, 'admin') === undefined && terminal.env.HOLDFAST_GATEWAY === undefined) return undefined;
  return { ask: (method, path, body) => askGateway(given, terminal, method, path, body) };
}

/** The file name of the store, or its database URL without user and password. */
function nameOf(given: Given, terminal: Terminal): string {
  const where = textOf(given, 'store') ?? terminal.env.HOLDFAST_STORE ?? '';
  const url = URL.parse(where);
  return url && url.protocol !== 'file:'
    ? `${url.host}${url.pathname}`
    : (where.split(/[/\\]/).at(-1) ?? where);
}

function interrupted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

import { assemblies } from '@holdfast/assembly';
import type { Engine, NewlyParked } from '@holdfast/contracts';
import { errorNote } from '@holdfast/contracts';
import { memoryEngine } from '@holdfast/contracts/memory';
import { onTestFinished } from 'vitest';
import { type ConsoleOptions, openConsole, type RouteName } from '../src/index.ts';

export const operateToken = 'operate-token-of-at-least-32-characters';
export const viewToken = 'view-token-that-has-at-least-32-characters';

/** An event that a consumer has given up. */
export function parkedEvent(id: string, changes: Partial<NewlyParked> = {}): NewlyParked {
  const error = errorNote(new TypeError('total is not a number'));
  return {
    ...{
      id,
      topic: 'orders',
      type: 'order.placed',
      key: `key-${id}`,
      tenant: 'acme',
      headers: { region: 'eu' },
    },
    ...{
      payload: `{"total":"12","card":"4111"}`,
      correlationId: id,
      idempotencyKey: id,
      originTopic: 'orders',
    },
    ...{ firstSeenAt: Date.now() - 5000, expiresAt: undefined, replay: undefined },
    diagnosis: {
      ...{
        reason: error.type,
        message: error.message,
        stop: 'not_retryable',
        finalAttempt: 1,
        consumer: 'orders',
        error,
      },
      story: [
        {
          ...{ attempt: 1, at: Date.now(), tookMs: 3, class: 'fatal', errorType: error.type },
          ...{ errorMessage: error.message, verdict: 'park', because: 'not_retryable', owner: 'orders' },
        },
      ],
    },
    ...changes,
  };
}

/** A console on a store in memory, and a way to ask it. */
export async function openTestConsole(options: Partial<ConsoleOptions> = {}, given: Engine = memoryEngine()) {
  const engine = given as ReturnType<typeof memoryEngine>;
  await engine.broker.declare('orders');
  const errors: unknown[] = [];
  const opened = await openConsole({
    ...{ engine, token: operateToken, viewToken, assemblies: assemblies({ engine, programs: [] }) },
    onError: (error) => errors.push(error),
    ...options,
  });
  const { url, port } = await opened.listen({ port: 0 });
  onTestFinished(() => opened.close());

  /** Sends a request as a program does. */
  async function ask(route: RouteName | `${string} ${string}`, body?: unknown, headers: HeadersInit = {}) {
    const [method = '', path = ''] = route.split(' ');
    const response = await fetch(`${url}api/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${operateToken}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = /json/.test(response.headers.get('content-type') ?? '');
    return {
      status: response.status,
      headers: response.headers,
      text,
      // biome-ignore lint/suspicious/noExplicitAny: what the API answers is checked by each test
      json: (isJson ? JSON.parse(text) : undefined) as any,
    };
  }

  return { engine, console: opened, url, port, ask, errors };
}

import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { network } from '../src/classify/network.ts';
import type { Judgement } from '../src/decide/outcome.ts';

const judge = (error: unknown) => network.classify({ ok: false, error }, () => 0) as Judgement | undefined;
const withCode = (code: string, more = {}) => Object.assign(new Error(code), { code }, more);
const fetchFailed = (cause: unknown) => new TypeError('fetch failed', { cause });

describe('codes', () => {
  test.each([
    ...[
      'ECONNRESET',
      'ECONNREFUSED',
      'ECONNABORTED',
      'ETIMEDOUT',
      'ESOCKETTIMEDOUT',
      'EPIPE',
      'EAI_AGAIN',
      'ENOTFOUND',
    ],
    ...['EHOSTUNREACH', 'EHOSTDOWN', 'ENETUNREACH', 'ENETDOWN', 'ENETRESET', 'EADDRNOTAVAIL', 'ERR_NETWORK'],
    ...['UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'UND_ERR_SOCKET'],
    ...[
      'ERR_STREAM_PREMATURE_CLOSE',
      'ERR_HTTP2_GOAWAY_SESSION',
      'ERR_HTTP2_STREAM_ERROR',
      'ERR_HTTP2_SESSION_ERROR',
    ],
  ])('%s is transient, bare and as a cause', (code) => {
    expect(judge(withCode(code))?.class).toBe('transient');
    expect(judge(fetchFailed(withCode(code)))?.class).toBe('transient');
  });

  test.each([
    ...[
      'ENOENT',
      'EACCES',
      'ERR_INVALID_URL',
      'CERT_HAS_EXPIRED',
      'ERR_TLS_CERT_ALTNAME_INVALID',
      'UND_ERR_ABORTED',
    ],
    ...[
      'UND_ERR_INVALID_ARG',
      'ERR_CANCELED',
      'ERR_BAD_REQUEST',
      'DEPTH_ZERO_SELF_SIGNED_CERT',
      '',
      undefined,
      20,
    ],
  ])('%s is not known here', (code) => {
    expect(judge(Object.assign(new Error('x'), { code }))).toBeUndefined();
    expect(judge(fetchFailed(Object.assign(new Error('x'), { code })))).toBeUndefined();
  });
});

describe('messages', () => {
  test.each([
    'fetch failed',
    'Failed to fetch',
    'Failed to fetch (api.example)',
    'NetworkError when attempting to fetch resource.',
    'Load failed',
    'network error',
    'A network error occurred.',
    'Network request failed',
    'Network connection lost.',
    'The network connection was lost.',
    'The Internet connection appears to be offline.',
    'terminated',
    'error sending request for url (http://api.example/): client error',
    'Unable to connect. Is the computer able to access the url?',
  ])('a TypeError "%s" is transient, another error with that text is not known', (message) => {
    expect(judge(new TypeError(message))).toEqual({ class: 'transient', unprocessed: false });
    expect(judge(new Error(message))).toBeUndefined();
  });

  test.each([
    'x.fetch is not a function',
    "Cannot read properties of undefined (reading 'network')",
    'Invalid URL',
  ])('a TypeError "%s" is a bug, not the network', (message) => {
    expect(judge(new TypeError(message))).toBeUndefined();
  });

  test('a time limit is transient, an abort is nothing', () => {
    expect(judge(new DOMException('The operation timed out.', 'TimeoutError'))?.class).toBe('transient');
    expect(judge(new DOMException('This operation was aborted', 'AbortError'))).toBeUndefined();
  });
});

describe('proof that nothing was sent', () => {
  test.each([
    ['a refusal', withCode('ECONNREFUSED')],
    ['a name that was not found', withCode('ENOTFOUND', { syscall: 'getaddrinfo' })],
    ['a name server that does not answer', withCode('EAI_AGAIN')],
    ['a connection that took too long', withCode('UND_ERR_CONNECT_TIMEOUT')],
    ['a timeout while connecting', withCode('ETIMEDOUT', { syscall: 'connect' })],
    ['no route while connecting', withCode('EHOSTUNREACH', { syscall: 'connect' })],
    [
      'a broken TLS handshake',
      Object.assign(
        new Error('Client network socket disconnected before secure TLS connection was established'),
        {
          code: 'ECONNRESET',
        },
      ),
    ],
    [
      'a stream the server refused',
      withCode('ERR_HTTP2_STREAM_ERROR', { message: 'Stream closed with error code NGHTTP2_REFUSED_STREAM' }),
    ],
    ['a session that is going away', withCode('ERR_HTTP2_GOAWAY_SESSION')],
    ['a socket that never wrote', withCode('UND_ERR_SOCKET', { socket: { bytesWritten: 0 } })],
  ])('%s', (_, error) => {
    expect(judge(error)).toEqual({ class: 'transient', unprocessed: true });
    expect(judge(new Error('while saving', { cause: fetchFailed(error) }))).toEqual({
      class: 'transient',
      unprocessed: true,
    });
  });

  test.each([
    ['a reset', withCode('ECONNRESET', { syscall: 'read' })],
    ['a broken pipe', withCode('EPIPE', { syscall: 'write' })],
    ['no route in the middle', withCode('EHOSTUNREACH', { syscall: 'read' })],
    ['a slow answer', withCode('UND_ERR_HEADERS_TIMEOUT')],
    ['a socket that closed', withCode('UND_ERR_SOCKET', { socket: { bytesWritten: 120 } })],
    ['a time limit', new DOMException('late', 'TimeoutError')],
  ])('is not %s', (_, error) => {
    expect(judge(error)?.unprocessed).toBe(false);
  });

  test('takes every address that was tried', () => {
    const refused = withCode('ECONNREFUSED', { syscall: 'connect' });
    const unreachable = withCode('ENETUNREACH', { syscall: 'connect' });
    const reset = withCode('ECONNRESET', { syscall: 'read' });
    const all = (errors: Error[], code?: string) =>
      Object.assign(new AggregateError(errors), code ? { code } : {});
    expect(judge(fetchFailed(all([refused, unreachable], 'ETIMEDOUT')))?.unprocessed).toBe(true);
    expect(judge(all([refused, reset], 'ECONNREFUSED'))).toEqual({ class: 'transient', unprocessed: false });
    // Which of the mirrors has done it, nobody knows.
    expect(judge(all([refused, new Error('unknown')]))).toEqual({ class: 'transient', unprocessed: false });
    expect(judge(all(Array.from({ length: 100 }, () => withCode('ECONNREFUSED'))))?.unprocessed).toBe(false);
    expect(judge(all([]))).toBeUndefined();
  });
});

describe('chains', () => {
  test('are followed through circles and to a bound', () => {
    const circle = new Error('a') as Error & { cause: unknown };
    circle.cause = new Error('b', { cause: circle });
    expect(judge(circle)).toBeUndefined();
    const wrapped = (depth: number) => {
      let error: Error = withCode('ECONNRESET');
      for (let layer = 0; layer < depth; layer++) error = new Error('layer', { cause: error });
      return judge(error)?.class;
    };
    expect(wrapped(5)).toBe('transient');
    expect(wrapped(10_000)).toBeUndefined();
  });

  test('cost a bounded time, however wide and deep', () => {
    const wide = (depth: number): Error =>
      depth === 0 ? new Error('leaf') : new AggregateError(new Array(1_000).fill(wide(depth - 1)));
    expect(judge(wide(50))).toBeUndefined();
  });
});

describe('real errors', () => {
  const listen = async (onSocket: (socket: Socket) => void) => {
    const server = createServer(onSocket).listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    return { server, port: (server.address() as AddressInfo).port };
  };
  const failure = async (url: string, init?: RequestInit) => {
    return fetch(url, init).then(
      () => expect.fail('it should not answer'),
      (error: unknown) => error,
    );
  };

  test('a port where nobody listens is proof', async () => {
    const { server, port } = await listen(() => {});
    server.close();
    await once(server, 'close');
    expect(judge(await failure(`http://127.0.0.1:${port}`))).toEqual({
      class: 'transient',
      unprocessed: true,
    });
    expect(judge(await failure(`http://localhost:${port}`))).toEqual({
      class: 'transient',
      unprocessed: true,
    });
  });

  test('a server that hangs up on the request is none', async () => {
    const { port } = await listen((socket) => {
      socket.on('error', () => {});
      socket.on('data', () => socket.destroy());
    });
    const error = await failure(`http://127.0.0.1:${port}`, { method: 'POST', body: 'pay' });
    expect(judge(error)).toEqual({ class: 'transient', unprocessed: false });
  });

  test('a server that hangs up during the TLS handshake is proof', async () => {
    const { port } = await listen((socket) => {
      socket.on('error', () => {});
      socket.on('data', () => socket.destroy());
    });
    expect(judge(await failure(`https://127.0.0.1:${port}`))).toEqual({
      class: 'transient',
      unprocessed: true,
    });
  });

  test('a server that is too slow is transient', async () => {
    const { port } = await listen((socket) => {
      socket.on('error', () => {});
      onTestFinished(() => void socket.destroy());
    });
    const error = await failure(`http://127.0.0.1:${port}`, { signal: AbortSignal.timeout(5) });
    expect(judge(error)).toEqual({ class: 'transient', unprocessed: false });
  });

  test('a bad address is not the network', async () => {
    expect(judge(await failure('nothing://x'))).toBeUndefined();
  });
});

test('values are nobody’s failure', () => {
  expect(network.classify({ ok: true, value: withCode('ECONNRESET') }, () => 0)).toBeUndefined();
});

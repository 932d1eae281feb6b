import type { StoredAssembly } from '@holdfast/contracts';
import {
  type Clock,
  type Duration,
  durationMs,
  HoldfastError,
  OptionsError,
  systemClock,
  Timer,
} from 'holdfast';
import { assertKnownFields } from 'holdfast/fields';
import { readRequest } from 'holdfast/wire';
import type { Assemblies, AssemblyHandle, StartOptions } from './assemblies.ts';
import type { Program } from './assembly.ts';
import type { AssemblyStatus } from './assembly-status.ts';
import { fromStored } from './stored-value.ts';

/**
 * What a caller may do: false: nothing; true: the request; an object: the request, but only for this tenant's
 * assemblies.
 */
export type Permission = boolean | { readonly tenant: string };

/** The options of `assemblyDoor`. Without `authorize` it throws, so that no caller has access by accident. */
export interface DoorOptions<Tx = unknown> {
  /** The object that `assemblies()` returned. Required. */
  readonly assemblies: Assemblies<Tx>;
  /** The programs that can be started by HTTP. Required. */
  // biome-ignore lint/suspicious/noExplicitAny: programs of any input and result
  readonly programs: readonly Program<any, any, Tx>[];
  /**
   * Decides whether the caller may make this request. `assembly` is `undefined` for a start. A caller without
   * permission for an assembly gets 404, as if it did not exist. The ids of a tenant's assemblies begin with
   * the tenant's name, so that tenants can not use each other's ids. Required.
   */
  authorize(request: Request, assembly: StoredAssembly | undefined): Permission | Promise<Permission>;
  /** The URL path before the name of the program. Default: `/assemblies`. */
  readonly path?: string | undefined;
  /**
   * Returns options for a start, such as the patience class. Default: the patience of the `Holdfast` header.
   */
  readonly startOptions?: ((request: Request, input: unknown) => Omit<StartOptions, 'id'>) | undefined;
  /**
   * The longest time that a request waits for a result, even if its `Prefer: wait` header asks for more.
   * Default: `30s`.
   */
  readonly waitMax?: Duration | undefined;
  /** The clock for all waits and timeouts. Default: the system's. */
  readonly clock?: Clock | undefined;
}

const known: Readonly<Record<keyof DoorOptions, true>> = {
  assemblies: true,
  programs: true,
  authorize: true,
  path: true,
  startOptions: true,
  waitMax: true,
  clock: true,
};

/** An error that is answered with this HTTP status and message. */
class Refusal extends HoldfastError {
  readonly status: number;

  constructor(status: number, message: string) {
    super('HOLDFAST_REQUEST', message);
    this.status = status;
  }
}

/**
 * Serves assemblies over HTTP. A start waits for the result if the caller prefers that, and else answers 202.
 * A customer can read or follow the status, cancel, extend the patience and send signals. Uses the Request
 * and Response of the fetch standard.
 */
export function assemblyDoor<Tx>(options: DoorOptions<Tx>): (request: Request) => Promise<Response> {
  assertKnownFields(known, options);
  const { assemblies, path = '/assemblies', waitMax = '30s', clock = systemClock, startOptions } = options;
  if (typeof options.authorize !== 'function')
    throw new OptionsError('authorize', options.authorize, 'a function that decides who may do what');
  const programs = new Map(options.programs.map((program) => [program.name, program]));
  const waitMaxMs = durationMs(waitMax, 'waitMax');

  async function start(request: Request, name: string): Promise<Response> {
    const program = programs.get(name);
    const permission = await options.authorize(request, undefined);
    if (!permission) throw new Refusal(403, 'the caller may not start this');
    if (!program) throw new Refusal(404, `there is no program ${name}`);
    const input = await readJson(request, assemblies.journal.limits.payloadBytesMax);
    const tenant = permission === true ? undefined : permission.tenant;
    const key = idempotencyKeyOf(request);
    const { patienceMs } = readRequest(request.headers);
    const given: StartOptions = {
      ...(patienceMs !== undefined && { patience: patienceMs }),
      ...startOptions?.(request, input),
      ...(tenant !== undefined && { tenant }),
      ...(key !== undefined && { id: tenant === undefined ? key : `${tenant}:${key}` }),
    };
    const it = await assemblies.start(program, input, given);
    // If another caller has started an assembly with this id, `permitted` answers 404, which reveals nothing
    // about that assembly.
    if (it.repeated) await permitted(request, name, it.id);
    const waitMs = Math.min(preferredWaitMs(request) ?? 0, waitMaxMs, patienceMs ?? Infinity);
    return answer(request, it, waitMs);
  }

  /** Returns the assembly if it exists and the caller may see it; otherwise the answer is 404. */
  async function permitted(request: Request, name: string, id: string): Promise<StoredAssembly> {
    const [stored] = await assemblies.journal.get([id]);
    if (stored?.name !== name || !(await mayTouch(request, stored)))
      throw new Refusal(404, `there is no assembly ${id} of ${name}`);
    return stored;
  }

  async function mayTouch(request: Request, stored: StoredAssembly): Promise<boolean> {
    const permission = await options.authorize(request, stored);
    return typeof permission === 'object' ? permission.tenant === stored.tenant : permission;
  }

  /** Waits up to `waitMs` for the end of the assembly, then answers with its status or result. */
  async function answer(request: Request, it: AssemblyHandle, waitMs: number): Promise<Response> {
    if (waitMs > 0) await ended(it, waitMs, request.signal);
    const [stored] = await assemblies.journal.get([it.id]);
    const status = await it.status();
    const applied =
      preferredWaitMs(request) === undefined
        ? {}
        : { 'preference-applied': `wait=${Math.ceil(waitMs / 1000)}` };
    const headers = { ...applied, etag: etagOf(status), 'cache-control': 'no-store' };
    const location = `${path}/${encodeURIComponent(status.name)}/${encodeURIComponent(it.id)}`;
    if (status.state === 'done')
      return json(
        200,
        { status: shown(status), result: fromStored(stored?.result) },
        { ...headers, location },
      );
    if (status.state === 'stopped') return stopped(status, headers);
    if (request.method === 'GET' && request.headers.get('if-none-match') === headers.etag)
      return new Response(null, { status: 304, headers });
    const retryAfter = Math.max(1, Math.min(60, Math.ceil((status.nextInMs ?? 1000) / 1000)));
    return json(202, { status: shown(status) }, { ...headers, location, 'retry-after': String(retryAfter) });
  }

  function ended(it: AssemblyHandle, waitMs: number, signal: AbortSignal): Promise<unknown> {
    const controller = new AbortController();
    const stop = () => controller.abort();
    const timer = new Timer(clock, stop);
    timer.setIn(waitMs);
    signal.addEventListener('abort', stop);
    return it
      .result({ signal: controller.signal, waitWhileParked: true })
      .catch(() => undefined) // ignore: it was stopped, or the wait timed out; `answer` reads the status
      .finally(() => {
        timer.clear();
        signal.removeEventListener('abort', stop);
      });
  }

  async function act(
    request: Request,
    it: AssemblyHandle,
    verb: string,
    name: string | undefined,
  ): Promise<Response> {
    const body = await readJson(request, assemblies.journal.limits.payloadBytesMax);
    const fields = Object(body) as { readonly reason?: unknown; readonly patience?: unknown };
    if (verb === 'cancel') await it.cancel(String(fields.reason ?? 'cancelled by the customer'));
    else if (verb === 'patience') await it.extend(fields.patience as Duration);
    else {
      const id = idempotencyKeyOf(request);
      if (!(await it.signal(name!, body, id === undefined ? {} : { id })))
        throw new Refusal(409, 'it has ended, and takes no signals');
    }
    return answer(request, it, 0);
  }

  function events(request: Request, it: AssemblyHandle): Response {
    const last = Number(request.headers.get('last-event-id') ?? Number.NaN);
    const controller = new AbortController();
    request.signal.addEventListener('abort', () => controller.abort());
    const notices = it.follow({ ...(last >= 0 && { after: last }), signal: controller.signal });
    const encoder = new TextEncoder();
    const stream = new ReadableStream<Uint8Array>({
      async pull(sink) {
        const { value, done } = await notices.next();
        if (done) return sink.close();
        const { number, type, text, status } = value;
        const data = JSON.stringify({ text, status: shown(status) });
        sink.enqueue(encoder.encode(`id: ${number}\nevent: ${type}\ndata: ${data}\n\n`));
      },
      cancel: () => controller.abort(),
    });
    return new Response(stream, {
      headers: { 'content-type': 'text/event-stream', 'cache-control': 'no-store' },
    });
  }

  async function serve(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (!pathname.startsWith(`${path}/`)) throw new Refusal(404, 'there is nothing here');
    const [name = '', id, verb, signal, ...more] = pathname
      .slice(path.length + 1)
      .split('/')
      .map(decoded);
    const { method } = request;
    if (id === undefined) {
      if (method !== 'POST') throw new Refusal(405, 'an assembly is started with POST');
      return start(request, name);
    }
    await permitted(request, name, id);
    const it = assemblies.get(id);
    if (verb === undefined && method === 'GET')
      return answer(request, it, Math.min(preferredWaitMs(request) ?? 0, waitMaxMs));
    if (verb === 'events' && method === 'GET') return events(request, it);
    const isSignal = verb === 'signals' && signal !== undefined && more.length === 0;
    if (
      method === 'POST' &&
      (isSignal || (signal === undefined && (verb === 'cancel' || verb === 'patience')))
    )
      return act(request, it, verb, signal);
    throw new Refusal(404, 'there is nothing here');
  }

  return async (request) => {
    try {
      return await serve(request);
    } catch (error) {
      return problemOf(error);
    }
  };
}

/** The response for a stopped assembly, as problem details (RFC 9457). */
function stopped(status: AssemblyStatus, headers: Readonly<Record<string, string>>): Response {
  const { because, message } = status.stop!;
  const code = because === 'patience_too_short' ? 504 : because === 'cancelled' ? 409 : 500;
  return problem(code, `stopped because ${message}`, { ...headers }, { because, status: shown(status) });
}

function problemOf(error: unknown): Response {
  const { code, message } = Object(error) as { code?: unknown; message?: string };
  if (error instanceof Refusal) return problem(error.status, error.message);
  if (code === 'HOLDFAST_ASSEMBLY_MISMATCH') return problem(422, 'this key was used with another input');
  if (code === 'HOLDFAST_ASSEMBLY_UNKNOWN') return problem(404, 'there is no such assembly');
  if (code === 'HOLDFAST_ASSEMBLY_STATE') return problem(409, String(message));
  if (code === 'HOLDFAST_OPTIONS') return problem(400, String(message));
  if (code === 'HOLDFAST_TOO_LARGE') return problem(413, String(message));
  // Do not reveal internal errors to the caller.
  return problem(503, 'the store can not be reached: try again', { 'retry-after': '1' });
}

function problem(
  status: number,
  title: string,
  headers: Record<string, string> = {},
  more: object = {},
): Response {
  return new Response(JSON.stringify({ type: 'about:blank', title, status, ...more }), {
    status,
    headers: { ...headers, 'content-type': 'application/problem+json' },
  });
}

function json(status: number, body: unknown, headers: Record<string, string>): Response {
  return new Response(JSON.stringify(body), {
    status,
    headers: { ...headers, 'content-type': 'application/json' },
  });
}

/** The fields of the status that a customer may see. Errors are for operators only. */
function shown(status: AssemblyStatus): object {
  const {
    id,
    name,
    state,
    text,
    progress,
    because,
    stop,
    patienceClass,
    patienceLeftMs,
    acceptedAt,
    endedAt,
  } = status;
  const left = patienceLeftMs < Infinity ? { patienceLeftMs } : {};
  const why = stop && { because: stop.because, message: stop.message };
  return { id, name, state, text, progress, because, stop: why, patienceClass, ...left, acceptedAt, endedAt };
}

function etagOf({ state, progress }: AssemblyStatus): string {
  const current = progress.current.map(({ step, attempts }) => `${step}:${attempts}`).join();
  return `"${Buffer.from(`${state} ${progress.done} ${current}`).toString('base64url').slice(-60)}"`;
}

/**
 * Returns the wait in `Prefer: wait=5` in ms, 0 for `respond-async`, and `undefined` without such a header.
 */
function preferredWaitMs(request: Request): number | undefined {
  const prefer = request.headers.get('prefer') ?? '';
  const wait = /(?:^|[,;\s])wait\s*=\s*"?(\d{1,6})/i.exec(prefer)?.[1];
  if (wait !== undefined) return Number(wait) * 1000;
  return /respond-async/i.test(prefer) ? 0 : undefined;
}

function idempotencyKeyOf(request: Request): string | undefined {
  const key = request.headers.get('idempotency-key')?.replace(/^"(.*)"$/, '$1');
  return key || undefined;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new Refusal(400, 'the path can not be read');
  }
}

async function readJson(request: Request, bytesMax: number): Promise<unknown> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body ?? []) {
    size += chunk.length;
    if (size > bytesMax) throw new Refusal(413, `a body has at most ${bytesMax} bytes`);
    chunks.push(chunk);
  }
  if (size === 0) return undefined;
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'));
  } catch {
    throw new Refusal(400, 'the body is not JSON');
  }
}

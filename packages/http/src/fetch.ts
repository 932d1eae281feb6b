import {
  type AmbientContext,
  ambientContext,
  type Context,
  type Duration,
  type Judgement,
  policy as makePolicy,
  OptionsError,
  type OutcomeClass,
  type Plan,
  type Policy,
  type PolicySpec,
  type Priority,
  type RunOptions,
  type StopReason,
  type Wait,
} from 'holdfast';
import { anything, callback, duration, flag, list, number, readTable, word } from 'holdfast/fields';
import { firstBytes, isReplayable, madeBy } from './body.ts';
import { judgeOf, status } from './classify-response.ts';
import { type Endpoints, endpointsOf } from './endpoints.ts';
import {
  type Announce,
  announce,
  announcementOf,
  announcesTo,
  type HoldfastHeader,
} from './holdfast-header.ts';
import { type Idempotency, keyField, keyMaker } from './idempotency-key.ts';
import { headerIn, type OutgoingHeaders, pairsOf, withHeaders } from './outgoing-headers.ts';
import { isRepeatable } from './repeatable.ts';
import { SpareResponse } from './unread-response.ts';

/** What a policy is run with: one of `holdfast`, whatever parts it is made of. */
export type Runner = Pick<Policy, 'name' | 'plan' | 'counters' | 'run' | 'try' | 'kill'>;

export interface FetchOptions {
  /** A policy, or the document of one. Breaker, budget and latency are kept for each origin. */
  readonly policy?: Runner | PolicySpec | undefined;
  /** Base URLs that are as good as each other: a relative URL goes to one of them, the next attempt preferably to another. */
  readonly endpoints?: readonly string[] | undefined;
  /** Where the `Idempotency-Key` of requests that are not safe to repeat comes from; `off` unless said. */
  readonly idempotency?: Idempotency | undefined;
  /** The statuses that are repeated, instead of the policy's. */
  readonly statuses?: readonly number[] | undefined;
  /** Asked first about each response; undefined leaves it to the rest. */
  readonly classify?: ((response: Response) => Judgement | OutcomeClass | undefined) | undefined;
  /** Whom to send the `Holdfast` header: all, none, or a list of origins. */
  readonly announce?: Announce | undefined;
  /** So many bytes of a `Request`'s body are kept for another attempt; 0 unless said, so that it is sent once. */
  readonly bodyBufferMax?: number | undefined;
  /** Told before each wait. */
  readonly onWait?: ((wait: Wait) => void) | undefined;
  /** What sends; the global one unless said. */
  readonly fetch?: Fetch | undefined;
}

/** What one call can say beyond what `fetch` knows. */
export interface CallOptions {
  readonly patience?: Duration | undefined;
  readonly priority?: Priority | undefined;
  readonly idempotencyKey?: string | undefined;
  /** Whether it may be repeated without a key, whatever its method. */
  readonly idempotent?: boolean | undefined;
  readonly onWait?: ((wait: Wait) => void) | undefined;
}

/** As of `fetch`, and a body may be made anew for each attempt. */
export interface HoldfastRequestInit extends Omit<RequestInit, 'body'> {
  body?: RequestInit['body'] | (() => RequestInit['body']);
  holdfast?: CallOptions | undefined;
}

/** Of what one call can say. */
const callFields = {
  patience: duration(),
  priority: word(undefined, 'critical', 'default', 'sheddable'),
  idempotencyKey: keyField,
  idempotent: flag(),
  onWait: callback<NonNullable<CallOptions['onWait']>>(),
};

/** Of what may be said to `createFetch`, everywhere. */
export const fetchFields = {
  policy: anything<Runner | PolicySpec>(),
  endpoints: list(anything<string>()),
  idempotency: anything<Idempotency>(),
  statuses: list(status),
  classify: callback<NonNullable<FetchOptions['classify']>>(),
  announce: anything<Announce>(),
  bodyBufferMax: number(0, 0),
  onWait: callback<NonNullable<FetchOptions['onWait']>>(),
  fetch: callback<Fetch>(),
};

export type FetchInput = Parameters<typeof globalThis.fetch>[0];
export type Fetch = (input: FetchInput, init?: RequestInit) => Promise<Response>;

/** A `fetch` that retries. */
export interface HoldfastFetch {
  (input: FetchInput, init?: HoldfastRequestInit): Promise<Response>;
  readonly policy: Runner;
  /** Lets the connections of this fetch end. */
  close(): Promise<void>;
}

/** How one attempt is sent. */
export interface Sender {
  /**
   * Settles with the head of the response, and shows it to `arrived` before. `caller` ends the body, too; the attempt's own
   * signal must not. `said` is what the `Holdfast` header says, if it is sent.
   */
  send(
    input: FetchInput,
    init: RequestInit | undefined,
    context: Context,
    caller: AbortSignal | undefined,
    said: string | undefined,
    isFresh: boolean,
    arrived: (response: Response) => Response,
  ): Promise<Response>;
  close(): Promise<void>;
}

/** A call, as far as it is the same for all its attempts. */
interface Call {
  readonly input: FetchInput;
  readonly init: HoldfastRequestInit | undefined;
  readonly request: Request | undefined;
  readonly headers: OutgoingHeaders;
  readonly key: string | undefined;
  readonly announcement: HoldfastHeader | undefined;
  readonly caller: AbortSignal | undefined;
  /** Where it goes: undefined leaves it to `input`. */
  readonly endpoints: Endpoints | undefined;
  body: RequestInit['body'] | (() => RequestInit['body']);
  isReplayable: boolean;
  sent: number;
  /** The latest attempt that has ended gave a response. */
  answered: boolean;
  /** The caller has what it gets. */
  isOver: boolean;
  /** What the latest attempt gave, until the next one has begun. */
  last: Response | undefined;
  spare: SpareResponse | undefined;
}

/** Makes `createFetch` for a place where `sender` sends and `ownOrigin` is the page's. */
export function fetchOver(
  options: FetchOptions,
  sender: Sender,
  ownOrigin: string | undefined,
): HoldfastFetch {
  const { bodyBufferMax = 0, idempotency, endpoints: bases } = options;
  const policy = runnerOf(options.policy);
  const endpoints = bases && endpointsOf(bases);
  const makeKey = keyMaker(idempotency);
  const mayAnnounce = announcesTo(options.announce ?? ownOrigin === undefined, ownOrigin);
  const judges = [judgeOf(options, false), judgeOf(options, true)] as const;
  async function fetchBuffered(request: Request, init: HoldfastRequestInit | undefined): Promise<Response> {
    const caller = callerOf(init, request, ambientContext());
    const first = await firstBytes(request.body as ReadableStream<Uint8Array>, bodyBufferMax, caller);
    return start(request, init, 'whole' in first ? first.whole : first.rest);
  }

  function fetch(input: FetchInput, init?: HoldfastRequestInit): Promise<Response> {
    try {
      const request = isRequest(input) ? input : undefined;
      // To `fetch`, a body of null is none: that of the Request is sent.
      if (!request?.body || (init?.body ?? null) !== null) return start(input, init, init?.body);
      if (bodyBufferMax > 0 && !request.bodyUsed) return fetchBuffered(request, init);
      return start(input, init, ONCE);
    } catch (error) {
      // A function that was given to us threw: whoever calls `fetch` expects a promise.
      return Promise.reject(error);
    }
  }

  function start(input: FetchInput, given: HoldfastRequestInit | undefined, body: Body | typeof ONCE) {
    const pairs = pairsOf(given?.headers as OutgoingHeaders);
    const init = pairs ? { ...given, headers: pairs } : given;
    const request = isRequest(input) ? input : undefined;
    const said = init?.holdfast && readTable(callFields, init.holdfast, 'holdfast.');
    const method = init?.method ?? request?.method ?? 'GET';
    const url = request ? request.url : String(input);
    const origin = originOf(url);
    const isShared = endpoints !== undefined && origin === undefined;
    if (isShared) endpoints.demandBelow(url);
    // Not a URL that could be sent anywhere from here: `fetch` knows best how to say so, or what it is relative to.
    if (origin === undefined && !isShared && !ownOrigin)
      return sender.send(input, init as RequestInit, nowhere, undefined, undefined, false, unchanged);

    const { plan } = policy;
    const around = ambientContext();
    const headers = (init?.headers ?? request?.headers) as OutgoingHeaders;
    const safe = isRepeatable(method);
    const ownKey = headerIn(headers, 'idempotency-key');
    const made =
      ownKey === undefined
        ? (said?.idempotencyKey ?? (safe ? undefined : makeKey?.({ method, url }, around, plan.random)))
        : undefined;
    const keyed = Boolean(ownKey ?? made);
    const idempotent = said?.idempotent ?? (safe || keyed);
    const replayable = typeof body === 'function' || (body !== ONCE && isReplayable(body));
    const speaks =
      (isShared
        ? endpoints.targets.every((each) => mayAnnounce(originOf(each) as string))
        : mayAnnounce(origin ?? (ownOrigin as string))) && headerIn(headers, 'holdfast') === undefined;
    const call: Call = {
      input,
      init,
      request,
      headers,
      key: made,
      announcement: speaks
        ? announcementOf(plan, idempotent && replayable, around, said?.priority)
        : undefined,
      caller: callerOf(init, request, around),
      endpoints: isShared ? endpoints : undefined,
      body: body === ONCE ? undefined : body,
      isReplayable: replayable,
      sent: 0,
      answered: true,
      isOver: false,
      last: undefined,
      spare: undefined,
    };
    return run(call, plan, {
      patience: said?.patience,
      signal: call.caller,
      target: isShared ? undefined : (origin ?? ownOrigin),
      targets: isShared ? endpoints.targets : undefined,
      idempotent,
      retryVeto: replayable ? undefined : () => notReplayable(call),
      classify: judges[keyed ? 1 : 0](plan),
      priority: said?.priority ?? around?.priority,
      onWait: waiting(call, plan, said?.onWait ?? options.onWait),
    });
  }

  function run(call: Call, plan: Plan, runOptions: RunOptions): Promise<Response> {
    return policy
      .run((context) => attempt(call, plan, context), runOptions)
      .then(
        (response) => {
          call.isOver = true;
          if (call.last !== response) discardLast(call, plan);
          else {
            call.last = undefined;
            call.spare?.release();
          }
          return response;
        },
        (error: unknown) => {
          call.isOver = true;
          discardLast(call, plan);
          throw error;
        },
      );
  }

  function attempt(call: Call, plan: Plan, context: Context): Promise<Response> {
    const { init, key, announcement, caller } = call;
    discardLast(call, plan);
    const isFresh = !call.answered;
    call.answered = false;
    call.sent++;
    const said = announcement && announce(announcement, context.attempt, context.patienceLeft);
    const sent = (key === undefined && !init ? {} : { ...init }) as SentInit;
    if (key !== undefined)
      sent.headers = withHeaders(call.headers, { 'idempotency-key': key }) as HeadersInit;
    const body = typeof call.body === 'function' ? madeBy(call.body) : call.body;
    if (body !== undefined) sent.body = demandBody(body);
    if (!isReplayable(body)) sent.duplex = 'half';
    const to = call.endpoints
      ? call.endpoints.resolve(context.target as string, String(call.input))
      : call.input;
    return sender.send(to, sent, context, caller, said, isFresh, (response) => {
      call.answered = true;
      // Of two that raced, one is left over.
      discardLast(call, plan);
      call.last = response;
      // Late: nobody waits for it any more.
      if (call.isOver) discardLast(call, plan);
      return response;
    });
  }

  return Object.assign(fetch, { policy, close: () => sender.close() });
}

type Body = Call['body'];
type SentInit = RequestInit & { duplex?: 'half' };
/** The body of a Request, which can be read once. */
const ONCE = Symbol('once');

const unchanged = (response: Response) => response;

/** For a call that no policy can help. */
const nowhere: Context = {
  attempt: 1,
  target: undefined,
  patienceLeft: Infinity,
  get signal() {
    return new AbortController().signal;
  },
};

export function runnerOf(given: Runner | PolicySpec = {}): Runner {
  return typeof (given as Partial<Runner> | null)?.run === 'function'
    ? (given as Runner)
    : makePolicy(given as PolicySpec);
}

function notReplayable({ sent }: Call): StopReason | undefined {
  return sent > 0 ? 'not_replayable' : undefined;
}

function waiting(call: Call, plan: Plan, onWait: ((wait: Wait) => void) | undefined): (wait: Wait) => void {
  return (wait) => {
    if (call.last) {
      call.spare = new SpareResponse(call.last, plan.clock);
      call.spare.readAhead();
    }
    onWait?.(wait);
  };
}

function discardLast(call: Call, plan: Plan): void {
  if (!call.last) return;
  const spare = call.spare ?? new SpareResponse(call.last, plan.clock);
  call.last = undefined;
  call.spare = undefined;
  spare.discard();
}

/** Whoever may end it: who calls, and the customer of the surrounding work. A Request has always a signal of its own. */
function callerOf(
  init: HoldfastRequestInit | undefined,
  request: Request | undefined,
  around: AmbientContext | undefined,
): AbortSignal | undefined {
  // To `fetch`, a signal of null is none, whatever the Request has.
  const own = init?.signal === undefined ? request?.signal : (init.signal ?? undefined);
  const customer = around?.signal;
  return own && customer ? AbortSignal.any([own, customer]) : (own ?? customer);
}

function demandBody<T>(body: T): T {
  if (typeof (body as { then?: unknown } | null)?.then !== 'function') return body;
  throw new OptionsError('body', 'a promise', 'a body, or a function that gives one at once');
}

function isRequest(input: FetchInput): input is Request {
  return typeof input === 'object' && 'url' in input && 'method' in input;
}

/** Origins by how they were written, so that a URL is parsed once for each. */
const origins = new Map<string, string>();
const originsMax = 1000;
/** The latest that was looked up: most callers have one, and to compare with it is cheaper than to hash a new string. */
let lastUrl = '\0';
let lastStart = '\0';
let lastOrigin = '';

/** The origin of an absolute URL of the web; undefined for all others. */
export function originOf(url: string): string | undefined {
  if (url === lastUrl) return lastOrigin;
  const end = url.indexOf('/', 8);
  const start = end < 0 ? url : url.slice(0, end);
  if (start === lastStart) return lastOrigin;
  const known = origins.get(start);
  if (known !== undefined) {
    lastUrl = url;
    lastStart = start;
    lastOrigin = known;
    return known;
  }
  if (!/^https?:/i.test(url) || !URL.canParse(url)) return undefined;
  const { origin } = new URL(url);
  // Only what ends with the host says the same of every URL that begins like it.
  if (/^https?:\/\/[\w.:-]+$/i.test(start)) {
    if (origins.size >= originsMax) origins.clear();
    origins.set(start, origin);
  }
  return origin;
}

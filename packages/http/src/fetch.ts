import {
  type AmbientContext,
  ambientContext,
  type Context,
  type Duration,
  HoldfastError,
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
import {
  anything,
  atPath,
  callback,
  duration,
  flag,
  list,
  number,
  readTable,
  type SettingsOf,
  type Table,
  word,
} from 'holdfast/fields';
import { firstBytes, isReplayable, madeBy } from './body.ts';
import { responseClassifier, statusField } from './classify-response.ts';
import { type Endpoints, endpointsOf } from './endpoints.ts';
import {
  type Announce,
  announceFilter,
  type HoldfastHeader,
  holdfastHeaderOf,
  writeHoldfastHeader,
} from './holdfast-header.ts';
import { type Idempotency, isRepeatable, keyField, keyMaker } from './idempotency-key.ts';
import { originOf } from './origin.ts';
import { headerIn, type OutgoingHeaders, pairsOf, withHeaders } from './outgoing-headers.ts';
import { requestTraits } from './request-traits.ts';
import type { Fetch, FetchInput, Sender } from './sender.ts';
import { UnreadResponse } from './unread-response.ts';

/** The members of a policy that this package uses. Policies of every type have them. */
export type Runner = Pick<Policy, 'name' | 'plan' | 'counters' | 'run' | 'try' | 'kill'>;

/**
 * A policy that exists already. The compiler also sees the fields of a document here, none of which is needed:
 * without them, it would suggest no name for a misspelt field of a document.
 */
export interface GivenPolicy<Spec extends object> extends Policy<Spec>, Omit<PolicySpec, 'name'> {}

/** Like `GivenPolicy`, but only with the members of a policy that this package uses. */
export interface GivenRunner extends Runner, Omit<PolicySpec, 'name'> {}

/** Options for any kind of `fetch`. `Spec` is the type of the document of the policy. */
export interface AnyFetchOptions<Spec extends object = PolicySpec> {
  /**
   * A policy, or the options for a new one. Each origin has its own breaker, retry budget and latency statistics.
   * Default: `policy()`.
   */
  readonly policy?: GivenPolicy<Spec> | PolicySpec | undefined;
  /**
   * Base URLs of servers that can all handle the same requests. A call with a relative URL goes to one of these
   * servers, and a retry preferably to another. Default: none.
   */
  readonly endpoints?: readonly string[] | undefined;
  /**
   * How methods such as POST get an `Idempotency-Key`, so that they can be retried. `derive`: from the key of the
   * request or event that is being handled. `auto`: derived if possible, otherwise random. Default: `off`.
   */
  readonly idempotency?: Idempotency | undefined;
  /**
   * The statuses to retry. They replace the list of the policy. Default: 408, 425, 429 and 5xx, except 501 and 505–519.
   */
  readonly statuses?: readonly number[] | undefined;
  /**
   * Called for each response before all other rules. If it returns `undefined`, the other rules decide. Default: none.
   */
  readonly classify?: ((response: Response) => Judgement | OutcomeClass | undefined) | undefined;
  /**
   * The origins that get the `Holdfast` request header: all, none, or a list. The header says how long the
   * caller waits. Default: all; in a browser none.
   */
  readonly announce?: Announce | undefined;
  /** How many bytes of a `Request`'s body are kept for a retry. With 0 the body can be sent only once. Default: `0`. */
  readonly bodyBufferMax?: number | undefined;
  /** Called before each wait for a retry. Default: none. */
  readonly onWait?: ((wait: Wait) => void) | undefined;
}

export interface FetchOptions<Spec extends object = PolicySpec> extends AnyFetchOptions<Spec> {
  /** The `fetch` that sends the attempts. Default: the global `fetch`. */
  readonly fetch?: Fetch | undefined;
}

/** Options of one call, in addition to those of `fetch`. */
export interface CallOptions {
  /** The time limit of this call, waits and retries included. Default: the `patience` of the policy. */
  readonly patience?: Duration | undefined;
  /**
   * Under load, calls with the lowest priority are refused first. Default: the priority of the request or event that is
   * being handled, or `default`.
   */
  readonly priority?: Priority | undefined;
  /**
   * The `Idempotency-Key` of this call, the same for all its attempts. Default: what the option `idempotency` makes.
   */
  readonly idempotencyKey?: string | undefined;
  /**
   * Whether a retry is safe. It overrides the method and the `Idempotency-Key`. Default: true for GET, HEAD, OPTIONS,
   * TRACE, QUERY, PUT and DELETE, and with a key.
   */
  readonly idempotent?: boolean | undefined;
  /** Called before each wait for a retry of this call. Default: `onWait` of `createFetch`. */
  readonly onWait?: ((wait: Wait) => void) | undefined;
}

/** The `init` argument of `fetch`. The body may be a function that returns a new body for each attempt. */
export interface HoldfastRequestInit extends Omit<RequestInit, 'body'> {
  body?: RequestInit['body'] | (() => RequestInit['body']);
  /** Options of this call for Holdfast, such as `{ patience: '2s' }`. `fetch` itself does not get them. */
  holdfast?: CallOptions | undefined;
}

const callFields = {
  patience: duration(),
  priority: word(undefined, 'critical', 'default', 'sheddable'),
  idempotencyKey: keyField,
  idempotent: flag(),
  onWait: callback<NonNullable<CallOptions['onWait']>>(),
};

export const fetchFields = {
  policy: anything<FetchOptions['policy']>(),
  endpoints: list(anything<string>()),
  idempotency: anything<Idempotency>(),
  statuses: list(statusField),
  classify: callback<NonNullable<FetchOptions['classify']>>(),
  announce: anything<Announce>(),
  bodyBufferMax: number(0, 0),
  onWait: callback<NonNullable<FetchOptions['onWait']>>(),
  fetch: callback<Fetch>(),
};

/** A `fetch` function that runs with a policy. It is called like `fetch`, and has two more properties. */
export interface HoldfastFetch<Spec extends object = PolicySpec> {
  (input: FetchInput, init?: HoldfastRequestInit): Promise<Response>;
  /** The policy that `createFetch` got or made, for `explain`, `update` or `kill`. */
  readonly policy: Policy<Spec>;
  /**
   * Closes the connections of this `fetch` function after the running responses have ended. Later calls are
   * rejected with a `FetchClosedError`.
   */
  close(): Promise<void>;
}

/** Thrown for a call of a `fetch` function after its `close()`. Nothing was sent. */
export class FetchClosedError extends HoldfastError {
  constructor(policy: string | undefined) {
    const of = policy === undefined ? '' : ` of the policy ${policy}`;
    super(
      'HOLDFAST_FETCH_CLOSED',
      `this fetch${of} was closed with close(); make a new one with createFetch()`,
    );
  }
}

/**
 * Reads the options of `createFetch`. The message for an option of a policy says where that option belongs.
 */
export function readFetchOptions<T extends Table>(fields: T, options: object): SettingsOf<T> {
  for (const [key, value] of Object.entries(options)) {
    if (Object.hasOwn(fields, key) || !isPolicyOption(key)) continue;
    throw new OptionsError(key, value, Object.keys(fields).join(', '), `policy: { ${key} }`, true);
  }
  return readTable(fields, options);
}

function isPolicyOption(key: string): boolean {
  return key === 'name' || makePolicy().parts.some(({ fields }) => Object.hasOwn(fields, key));
}

interface CallInput {
  readonly input: FetchInput;
  readonly init: HoldfastRequestInit | undefined;
  readonly request: Request | undefined;
  readonly method: string;
  readonly url: string;
  readonly headers: OutgoingHeaders;
  readonly body: Body | typeof ONCE;
  readonly options: SettingsOf<typeof callFields> | undefined;
  /** The origin of the URL. Undefined if the call goes to `endpoints`, or if its URL is invalid. */
  readonly origin: string | undefined;
  readonly endpoints: Endpoints | undefined;
}

interface Call {
  readonly input: FetchInput;
  readonly init: HoldfastRequestInit | undefined;
  readonly headers: OutgoingHeaders;
  /** The Idempotency-Key that this client adds, if any. */
  readonly key: string | undefined;
  readonly header: HoldfastHeader | undefined;
  readonly caller: AbortSignal | undefined;
  readonly endpoints: Endpoints | undefined;
  readonly body: Body;
  sent: number;
  /** True: the latest attempt got a response. If not, the next attempt uses a new connection. */
  gotResponse: boolean;
  isOver: boolean;
  /** The response of the latest attempt. It is removed when the next attempt begins. */
  last: Response | undefined;
  unread: UnreadResponse | undefined;
}

/**
 * Creates a `fetch` function that sends requests through `sender`. `ownOrigin` is the origin of the web page
 * in a browser.
 */
export function fetchOver<Spec extends object>(
  options: FetchOptions<Spec>,
  sender: Sender,
  ownOrigin: string | undefined,
): HoldfastFetch<Spec> {
  const { bodyBufferMax = 0, idempotency, endpoints: bases } = options;
  const policy = runnerOf(options.policy, fetchFields, 'createFetch()') as Policy<Spec>;
  const endpoints = bases && endpointsOf(bases);
  const makeKey = keyMaker(idempotency);
  const mayAnnounce = announceFilter(options.announce ?? ownOrigin === undefined, ownOrigin);
  const classifiers = [responseClassifier(options, false), responseClassifier(options, true)] as const;
  let isClosed = false;

  async function fetchBuffered(request: Request, init: HoldfastRequestInit | undefined): Promise<Response> {
    const caller = callerSignalOf(init, request, ambientContext());
    const first = await firstBytes(request.body as ReadableStream<Uint8Array>, bodyBufferMax, caller);
    return start(request, init, 'whole' in first ? first.whole : first.rest);
  }

  function fetch(input: FetchInput, init?: HoldfastRequestInit): Promise<Response> {
    if (isClosed) return Promise.reject(new FetchClosedError(policy.name));
    try {
      const request = isRequest(input) ? input : undefined;
      // If `init.body` is null, `fetch` sends the body of the Request, as if `init` had no body.
      if (!request?.body || (init?.body ?? null) !== null) return start(input, init, init?.body);
      if (bodyBufferMax > 0 && !request.bodyUsed) return fetchBuffered(request, init);
      return start(input, init, ONCE);
    } catch (error) {
      // A function of the user has thrown. The caller of `fetch` expects a rejected promise, not an
      // exception.
      return Promise.reject(error);
    }
  }

  function start(input: FetchInput, init: HoldfastRequestInit | undefined, body: CallInput['body']) {
    const read = readCall(input, init, body);
    // The URL is relative or invalid, so send the request without a policy. `fetch` itself throws the best
    // error for an invalid URL, and may be able to resolve a relative URL.
    if (!read.origin && !read.endpoints)
      return sender.send(input, read.init as RequestInit, noContext, undefined, undefined, false, unchanged);
    const { plan } = policy;
    const { call, runOptions } = describe(read, plan);
    return run(call, plan, runOptions);
  }

  function readCall(
    input: FetchInput,
    given: HoldfastRequestInit | undefined,
    body: CallInput['body'],
  ): CallInput {
    const pairs = pairsOf(given?.headers as OutgoingHeaders);
    const init = pairs ? { ...given, headers: pairs } : given;
    const request = isRequest(input) ? input : undefined;
    const options = init?.holdfast && readTable(callFields, init.holdfast, 'holdfast.');
    const url = request ? request.url : String(input);
    const origin = originOf(url);
    const toEndpoints = endpoints !== undefined && origin === undefined;
    if (toEndpoints) endpoints.assertBelow(url);
    return {
      input,
      init,
      request,
      method: init?.method ?? request?.method ?? 'GET',
      url,
      headers: (init?.headers ?? request?.headers) as OutgoingHeaders,
      body,
      options,
      origin: toEndpoints ? undefined : (origin ?? ownOrigin),
      endpoints: toEndpoints ? endpoints : undefined,
    };
  }

  /** Decides which Idempotency-Key and `Holdfast` header the call sends, and whether it may be retried. */
  function describe(read: CallInput, plan: Plan): { call: Call; runOptions: RunOptions } {
    const { input, init, request, method, url, headers, body, options: callOptions, origin } = read;
    const ambient = ambientContext();
    const callerKey = headerIn(headers, 'idempotency-key');
    assertOneKey(callerKey, callOptions?.idempotencyKey);
    const key =
      callerKey === undefined
        ? (callOptions?.idempotencyKey ??
          (isRepeatable(method) ? undefined : makeKey?.({ method, url }, ambient, plan.random)))
        : undefined;
    const traits = requestTraits(method, body, callerKey ?? key);
    const idempotent = callOptions?.idempotent ?? traits.isIdempotent;
    const announces =
      (read.endpoints
        ? read.endpoints.targets.every((each) => mayAnnounce(originOf(each) as string))
        : mayAnnounce(origin as string)) && headerIn(headers, 'holdfast') === undefined;
    const call: Call = {
      input,
      init,
      headers,
      key,
      header: announces
        ? holdfastHeaderOf(plan, idempotent && traits.isReplayable, ambient, callOptions?.priority)
        : undefined,
      caller: callerSignalOf(init, request, ambient),
      endpoints: read.endpoints,
      body: body === ONCE ? undefined : body,
      sent: 0,
      gotResponse: true,
      isOver: false,
      last: undefined,
      unread: undefined,
    };
    const runOptions: RunOptions = {
      patience: callOptions?.patience,
      signal: call.caller,
      target: origin,
      targets: read.endpoints?.targets,
      idempotent,
      retryVeto: traits.isReplayable ? undefined : () => vetoAfterFirst(call),
      classify: classifiers[traits.isKeyed ? 1 : 0](plan),
      priority: callOptions?.priority ?? ambient?.priority,
      onWait: readAheadOnWait(call, plan, callOptions?.onWait ?? options.onWait),
    };
    return { call, runOptions };
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
            call.unread?.release();
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
    const { init, key, header, caller } = call;
    discardLast(call, plan);
    const isFresh = !call.gotResponse;
    call.gotResponse = false;
    call.sent++;
    const holdfastHeader = header && writeHoldfastHeader(header, context.attempt, context.patienceLeft);
    const sent = (key === undefined && !init ? {} : { ...init }) as SentInit;
    if (key !== undefined)
      sent.headers = withHeaders(call.headers, { 'idempotency-key': key }) as HeadersInit;
    const body = typeof call.body === 'function' ? madeBy(call.body) : call.body;
    if (body !== undefined) sent.body = assertBody(body);
    if (!isReplayable(body)) sent.duplex = 'half';
    const to = call.endpoints
      ? call.endpoints.resolve(context.target as string, String(call.input))
      : call.input;
    return sender.send(to, sent, context, caller, holdfastHeader, isFresh, (response) => {
      call.gotResponse = true;
      // If two attempts ran in parallel (a hedge), discard the earlier response: it is not needed any more.
      discardLast(call, plan);
      call.last = response;
      if (call.isOver) discardLast(call, plan);
      return response;
    });
  }

  function close(): Promise<void> {
    isClosed = true;
    return sender.close();
  }

  return Object.assign(fetch, { policy, close });
}

type Body = RequestInit['body'] | (() => RequestInit['body']);
type SentInit = RequestInit & { duplex?: 'half' };
/** Stands for the body stream of a Request, which can be read only once. */
const ONCE = Symbol('once');

const unchanged = (response: Response) => response;

const noContext: Context = {
  attempt: 1,
  target: undefined,
  patienceLeft: Infinity,
  get signal() {
    return new AbortController().signal;
  },
};

/** Returns the policy itself, or makes one from a document. `elsewhere` has the options beside the policy. */
export function runnerOf(given: GivenRunner | PolicySpec = {}, elsewhere: Table, place: string): Runner {
  if (typeof (given as Partial<Runner> | null)?.run === 'function') return given as Runner;
  assertNotElsewhere(Object(given), elsewhere, place);
  assertFallback(given as PolicySpec);
  return atPath('policy', () => makePolicy(given as PolicySpec));
}

/** Throws for an option that does not belong into the document of a policy, but beside it. */
function assertNotElsewhere(spec: object, elsewhere: Table, place: string): void {
  for (const [key, value] of Object.entries(spec))
    if (Object.hasOwn(elsewhere, key))
      throw new OptionsError(`policy.${key}`, value, 'a field of a policy', `${key}, in ${place}`, true);
}

/**
 * Throws for a fallback that is not a function. A fixed Response could be used only once, because its body
 * can be read only once.
 */
function assertFallback(spec: PolicySpec | null): void {
  const { to } = Object(spec?.fallback) as { to?: unknown };
  if (to === undefined) return;
  for (const each of [to].flat())
    if (typeof each !== 'function')
      throw new OptionsError('policy.fallback.to', each, 'a function that returns a Response, as fetch does');
}

/**
 * Throws if the header and the option of a call name different idempotency keys: it is unknown which key is
 * meant.
 */
function assertOneKey(inHeader: string | undefined, inOptions: string | undefined): void {
  if (inHeader === undefined || inOptions === undefined || inHeader === inOptions) return;
  throw new OptionsError(
    'holdfast.idempotencyKey',
    inOptions,
    `the key of the header Idempotency-Key, ${JSON.stringify(inHeader)}, or only one of the two`,
  );
}

function vetoAfterFirst({ sent }: Call): StopReason | undefined {
  return sent > 0 ? 'not_replayable' : undefined;
}

function readAheadOnWait(
  call: Call,
  plan: Plan,
  onWait: ((wait: Wait) => void) | undefined,
): (wait: Wait) => void {
  return (wait) => {
    if (call.last) {
      call.unread = new UnreadResponse(call.last, plan.clock);
      call.unread.readAhead();
    }
    onWait?.(wait);
  };
}

function discardLast(call: Call, plan: Plan): void {
  if (!call.last) return;
  const unread = call.unread ?? new UnreadResponse(call.last, plan.clock);
  call.last = undefined;
  call.unread = undefined;
  unread.discard();
}

/**
 * Returns a signal that aborts with the caller's signal, or with that of the event or request being handled.
 */
function callerSignalOf(
  init: HoldfastRequestInit | undefined,
  request: Request | undefined,
  ambient: AmbientContext | undefined,
): AbortSignal | undefined {
  // If `init.signal` is null, `fetch` uses no signal, even if the Request has one.
  const own = init?.signal === undefined ? request?.signal : (init.signal ?? undefined);
  const inherited = ambient?.signal;
  return own && inherited ? AbortSignal.any([own, inherited]) : (own ?? inherited);
}

function assertBody<T>(body: T): T {
  if (typeof (body as { then?: unknown } | null)?.then !== 'function') return body;
  throw new OptionsError('body', 'a promise', 'a body, or a function that gives one at once');
}

function isRequest(input: FetchInput): input is Request {
  return typeof input === 'object' && 'url' in input && 'method' in input;
}

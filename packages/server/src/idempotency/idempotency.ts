import { hash } from 'node:crypto';
import type { Begun, Claim, Completion, Hold, Ledger, SettlementResult } from '@holdfast/contracts';
import { type Duration, type Environment, OptionsError, sleep, systemClock, systemRandom } from 'holdfast';
import { anything, count, duration, type FieldsOf, flag, list, text, word } from 'holdfast/fields';
import { readResponse, writeResponse } from 'holdfast/wire';
import { BatchingStore, defaultBatching } from '../batching-store.ts';
import { type Exchange, tooLarge } from '../exchange.ts';
import { methodField, objectWith, readOptions } from '../option-fields.ts';
import type { Part } from '../part.ts';
import { clientClosedRequest, problem } from '../problem.ts';

import type { HandlerResponse, PlainResponse } from '../response.ts';
import { HeldKey, type HeldKeySettings } from './held-key.ts';
import { readKey } from './idempotency-key.ts';
import {
  assertEncryption,
  decryptRecord,
  encryptRecord,
  type RecordEncryption,
} from './record-encryption.ts';
import { requestFingerprint, storeKey } from './request-fingerprint.ts';
import { decodeResponse, encodeResponse, isReplayable } from './response-record.ts';
import 'holdfast/ambient';

const mebibyte = 1024 * 1024;

/** The options of `idempotency`. `ledger` and `scope` are required. */
export interface IdempotencyOptions {
  /** The store of keys and responses, for example the `ledger` of `openPostgres`. Required. */
  ledger: Ledger<never>;
  /**
   * Returns the owner of the key, for example the authenticated user. `undefined`: the request is refused
   * with 403. `'public'`: all clients share one set of keys. Required.
   */
  scope: ((exchange: Exchange) => string | undefined) | 'public';
  /** Whether a request without a key is refused. Default: `true`. */
  required?: boolean | undefined;
  /** The methods whose requests are checked for a key. All other requests pass. Default: `POST`, `PATCH`. */
  methods?: string | readonly string[] | undefined;
  /**
   * How long a request waits while another request with the same key runs. After that, it is refused.
   * Default: `0ms`.
   */
  wait?: Duration | undefined;
  /**
   * What to do if the process died while it handled an earlier request with this key. `tell`: respond that
   * the outcome is unknown. `reexecute`: execute the request again. Default: `tell`.
   */
  whenLost?: 'tell' | 'reexecute' | undefined;
  /**
   * True: you promise that handlers change data only in `commit`. A retry is then executed if the process dies
   * during a request, or if the handler responds with a 5xx and has not committed. Default: `false`.
   */
  transactional?: boolean | undefined;
  /**
   * How long a key stays locked if the lock is not extended. It is extended while the handler runs. Default:
   * `30s`.
   */
  lease?: Duration | undefined;
  /** The longest time that a handler can keep a key locked. Default: `15m`. */
  heldMax?: Duration | undefined;
  /** How long keys and responses are kept. Default: `24h`. */
  keep?: Duration | undefined;
  /**
   * The most keys of one scope, so that one caller cannot fill the store. With `'public'`, all callers share
   * one scope. Default: `10000`, or `1000000` with `'public'`.
   */
  liveMax?: number | undefined;
  /** The most bytes of a request body. Default: `1048576` (1 MiB). */
  bodyMax?: number | undefined;
  /**
   * The most bytes of a recorded response. A longer response is sent, but not recorded. Default: `1048576` (1
   * MiB).
   */
  responseMax?: number | undefined;
  /** The names of further response headers to record. Default: none. */
  replay?: string | readonly string[] | undefined;
  /** Encrypts recorded responses before they are stored. Default: none. */
  encryption?: RecordEncryption | undefined;
  /** How long a request waits for an answer of the store. Default: `35ms`. */
  timeout?: Duration | undefined;
}

export const idempotencyFields = {
  ledger: objectWith<Ledger<never>>('a Ledger', 'begin', 'ledger'),
  scope: anything<((exchange: Exchange) => string | undefined) | 'public'>(),
  required: flag(true),
  methods: list(methodField, ['POST', 'PATCH']),
  wait: duration('0ms'),
  whenLost: word('tell', 'tell', 'reexecute'),
  transactional: flag(false),
  lease: duration('30s', undefined, 100),
  heldMax: duration('15m'),
  keep: duration('24h'),
  liveMax: count(undefined, 1),
  bodyMax: count(mebibyte, 0),
  responseMax: count(mebibyte, 0),
  replay: list(text(), []),
  encryption: anything<RecordEncryption>(),
  timeout: duration('35ms'),
} satisfies FieldsOf<IdempotencyOptions>;

/** Executes one of all requests with the same key, and sends its recorded response to the others. */
export interface IdempotencyPart extends Part {
  readonly counts: IdempotencyCounts;
  /**
   * Deletes all keys and recorded responses of a scope, and resolves with their number. Keys of running
   * requests stay.
   */
  purge(scope: string): Promise<number>;
}

/** How requests with a key were handled, since the process started. */
export interface IdempotencyCounts {
  executed: number;
  replayed: number;
  /** Requests that were refused because of their key, for example a missing or invalid one. */
  refused: number;
  /** Requests that were refused because the store of idempotency keys was unavailable. */
  failedClosed: number;
  /** Requests whose response could not be recorded. A retry does not get this response. */
  unrecorded: number;
}

/** Handlers send these statuses before they change anything, so the key can be used again. */
const effectlessStatuses = new Set([401, 403, 408, 409, 425, 429]);

const liveMaxOfCaller = 10_000;
/** For scope `public`: unknown clients choose the keys, so their number must have a limit. */
const liveMaxOfPublic = 1_000_000;
const scopeLengthMax = 128;
const pollMs = [50, 250] as const;
const repeatMs = 250;
const waitersMax = 100;
const retrySafe = writeResponse({ retry: 'safe' })!;
const retryNever = writeResponse({ retry: 'never' })!;
const retrySoon = { 'retry-after': '1' };

const storeUnavailable = problem('store-unavailable', retrySoon);
const inProgress = problem('in-progress', retrySoon);
const retryLater = { 'retry-after': '60' };
const callerFull = problem('too-many-keys', retryLater);
const storeFull = problem('too-many-keys', retryLater, { title: 'There are too many live keys.' });

/**
 * A part for `guard`. It executes only one of all requests with the same Idempotency-Key, and all of them get
 * its response.
 */
export function idempotency(options: IdempotencyOptions, environment: Environment = {}): IdempotencyPart {
  const settings = readOptions(idempotencyFields, options, 'idempotency', "{ ledger, scope: 'public' }", {
    ttl: 'keep',
    expiry: 'keep',
    store: 'ledger',
  });
  const { clock = systemClock, random = systemRandom } = environment;
  const { scope: scopeOf, keep: keepMs, lease: leaseMs, bodyMax, responseMax, timeout: timeoutMs } = settings;
  const ledger = assertLedger(settings.ledger);
  assertScope(scopeOf);
  // All callers share the scope `public`, so it needs a higher limit than a single caller.
  const liveMax = settings.liveMax ?? (scopeOf === 'public' ? liveMaxOfPublic : liveMaxOfCaller);
  const mayReexecute = settings.transactional || settings.whenLost === 'reexecute';
  const alsoReplayed = settings.replay.map((name) => assertReplayable(name.toLowerCase()));
  const encryption = assertEncryption(settings.encryption);
  const heldKeySettings: HeldKeySettings = {
    encryption,
    leaseMs,
    keepMs,
    heldMaxMs: settings.heldMax,
    mayReexecute,
    alsoReplayed,
  };
  const methods = new Set(settings.methods);
  const { required } = settings;
  const counts: IdempotencyCounts = { executed: 0, replayed: 0, refused: 0, failedClosed: 0, unrecorded: 0 };
  const waiters = new Map<string, number>();

  const batching = { ...defaultBatching, timeoutMs };
  const begins = new BatchingStore<Claim, Begun>(
    (claims) => ledger.begin(claims),
    batching,
    clock,
    (begun) => {
      // The store locked the key only after the timeout, and the client has already got a 503. So unlock the
      // key.
      if (begun.kind === 'acquired') freeUnusedKey(begun);
    },
  );
  const completions = new BatchingStore<Completion, SettlementResult>(
    (all) => ledger.complete(all),
    batching,
    clock,
  );
  const releases = new BatchingStore<Hold, boolean>((holds) => ledger.release(holds), batching, clock);

  /** Repeats `submit` until the store accepts the item, for at most the duration of a lease. */
  async function settleLater<Item, Result>(store: BatchingStore<Item, Result>, item: Item): Promise<void> {
    const until = clock.now() + leaseMs;
    while ((await store.submit(item)) === undefined) {
      if (clock.now() >= until) {
        counts.unrecorded++;
        return;
      }
      await sleep(clock, repeatMs);
    }
  }

  function freeUnusedKey({ hold, attempt }: Begun & { kind: 'acquired' }): void {
    if (attempt === 1) settleLater(releases, hold);
    // An earlier request may have had an effect, so the count of attempts must stay. A lease of 1 ms unlocks
    // the key without deleting it.
    else ledger.extend([hold], 1).catch(() => {});
  }

  async function settle(
    exchange: Exchange,
    held: HeldKey<unknown>,
    response: HandlerResponse,
  ): Promise<PlainResponse | undefined> {
    held.end();
    if (held.isCommitted) return undefined;
    const { hold } = held;
    const { transactional } = settings;
    if (freesKey(held, response, transactional)) {
      if ((await releases.submit(hold)) === undefined) settleLater(releases, hold);
      if (transactional && isKnownToBeUndone(held, response)) exchange.setHeader('holdfast', retrySafe);
      return undefined;
    }
    const { status, headers, body } = response;
    const record =
      body === undefined
        ? undefined
        : encryptRecord(encryption, encodeResponse({ status, headers, body }, alsoReplayed), hold.scope);
    const completion = { hold, record, keepMs };
    const settled = await completions.submit(completion);
    if (settled === undefined) settleLater(completions, completion);
    if (settled === undefined || settled.took) return undefined;
    counts.unrecorded++;
    // The lease was lost. With `mayReexecute`, another request may run the handler again, so the client must
    // retry.
    return mayReexecute ? inProgress : undefined;
  }

  function execute(
    exchange: Exchange,
    key: string,
    claim: Claim,
    begun: Begun & { kind: 'acquired' },
  ): undefined {
    counts.executed++;
    const held = new HeldKey(key, claim, begun, ledger, exchange, heldKeySettings);
    exchange.idempotent = held;
    // Two tenants may send the same key. The hashed key includes the tenant, so called services can
    // distinguish them.
    exchange.idempotencyKey = claim.key;
    exchange.isAmbient = true;
    exchange.addReviewer(responseMax, (response) => settle(exchange, held, response));
  }

  async function begin(exchange: Exchange, key: string, claim: Claim): Promise<PlainResponse | undefined> {
    let begun = await begins.submit(claim);
    if (begun?.kind === 'running' && settings.wait > 0) begun = await waitForOther(exchange, claim, begun);
    if (begun === undefined) {
      counts.failedClosed++;
      return storeUnavailable;
    }
    if (begun.kind === 'acquired') {
      if (!exchange.isAbandoned) return execute(exchange, key, claim, begun);
      freeUnusedKey(begun);
      return clientClosedRequest;
    }
    if (begun.kind === 'done' && begun.record !== undefined) {
      counts.replayed++;
      return finalIfFailed(decodeResponse(decryptRecord(encryption, begun.record, claim.scope)));
    }
    counts.refused++;
    if (begun.kind === 'running') return inProgress;
    if (begun.kind === 'mismatch') return problem('key-reused');
    if (begun.kind === 'unknown') return problem('outcome-unknown');
    if (begun.kind === 'full') return scopeOf === 'public' ? storeFull : callerFull;
    return problem('response-not-stored');
  }

  /**
   * Polls the store until the other request with this key ends. It waits for at most `wait`, and not beyond
   * the client's deadline.
   */
  async function waitForOther(exchange: Exchange, claim: Claim, running: Begun): Promise<Begun | undefined> {
    const waiting = waiters.get(claim.key) ?? 0;
    if (waiting >= waitersMax) return running;
    waiters.set(claim.key, waiting + 1);
    try {
      const until = Math.min(clock.now() + settings.wait, exchange.patienceEndsAt);
      let begun: Begun | undefined = running;
      for (let step: number = pollMs[0]; begun?.kind === 'running'; step = Math.min(step * 1.5, pollMs[1])) {
        const delayMs = step * (0.75 + random() / 2);
        if (clock.now() + delayMs > until || exchange.isAbandoned) return running;
        await sleep(clock, delayMs);
        begun = await begins.submit(claim);
      }
      return begun;
    } finally {
      const left = waiters.get(claim.key)! - 1;
      if (left > 0) waiters.set(claim.key, left);
      else waiters.delete(claim.key);
    }
  }

  function refuse(response: PlainResponse): PlainResponse {
    counts.refused++;
    return response;
  }

  return {
    name: 'idempotency',
    bodyMax,
    counts,
    purge: (scope) => ledger.purge(ledgerScope(scope)),
    enter(exchange) {
      if (!methods.has(exchange.method)) return undefined;
      const read = readKey(exchange.headerLines('idempotency-key'));
      if (read === 'missing') return required ? refuse(problem('key-missing')) : undefined;
      if (read === 'invalid') return refuse(problem('key-invalid'));
      const scope = scopeOf === 'public' ? scopeOf : scopeOf(exchange);
      if (!scope) return refuse(problem('scope-unknown'));
      if (typeof scope !== 'string') throw new OptionsError('idempotency.scope', scope, 'a text');

      const claimKey = (body: Awaited<ReturnType<Exchange['readBody']>>) => {
        if (exchange.isAbandoned) return clientClosedRequest;
        if (body === tooLarge) return refuse(problem('content-too-large', { connection: 'close' }));
        const claim: Claim = {
          scope: ledgerScope(scope),
          key: storeKey(scope, exchange, read.key),
          fingerprint: requestFingerprint(exchange, body),
          leaseMs,
          keepMs,
          liveMax,
          whenLost: mayReexecute ? 'takeOver' : 'tell',
        };
        return begin(exchange, read.key, claim);
      };
      if (exchange.isAbandoned) return clientClosedRequest;
      const body = exchange.readBody(bodyMax);
      return body instanceof Promise ? body.then(claimKey) : claimKey(body);
    },
  };
}

function ledgerScope(scope: string): string {
  return scope.length <= scopeLengthMax ? scope : hash('sha256', scope, 'base64url');
}

function freesKey(
  held: HeldKey<unknown>,
  { status, headers }: HandlerResponse,
  transactional: boolean,
): boolean {
  if (status < 400) return false;
  // The handler has changed data only in `commit`, and `commit` has not succeeded. If its transaction is
  // committed meanwhile, the ledger keeps the recorded response, because it releases only keys without one.
  if (transactional && status >= 500) return true;
  return held.nothingWasDone || effectlessStatuses.has(status) || readResponse(headers).retry === 'safe';
}

/** True for a failed request that has surely changed nothing, if the handler says nothing else about it. */
function isKnownToBeUndone(held: HeldKey<unknown>, { status, headers }: HandlerResponse): boolean {
  if (status < 500 || readResponse(headers).retry !== undefined) return false;
  return held.nothingWasDone || !held.isCommitBegun;
}

/** Each further request with this key gets the same failure. So the client must not retry with this key. */
function finalIfFailed(response: PlainResponse): PlainResponse {
  if (response.status < 500) return response;
  return { ...response, headers: { ...response.headers, holdfast: retryNever } };
}

function assertLedger(ledger: Ledger | undefined): Ledger {
  if (typeof ledger?.begin === 'function') return ledger;
  throw new OptionsError('idempotency.ledger', ledger, 'a Ledger');
}

function assertScope(
  scope: unknown,
): asserts scope is 'public' | ((exchange: Exchange) => string | undefined) {
  if (scope === 'public' || typeof scope === 'function') return;
  throw new OptionsError(
    'idempotency.scope',
    scope,
    'a function that gives the owner of the key, or "public"',
  );
}

function assertReplayable(name: string): string {
  if (isReplayable(name)) return name;
  throw new OptionsError('idempotency.replay', name, 'headers that are not meant for one caller alone');
}

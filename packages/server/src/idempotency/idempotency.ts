import { hash } from 'node:crypto';
import type { Begun, Claim, Completion, Hold, Ledger, SettlementResult } from '@holdfast/contracts';
import { type Clock, OptionsError, type Random, sleep, systemClock, systemRandom } from 'holdfast';
import { anything, count, duration, flag, list, readTable, type SpecOf, text, word } from 'holdfast/fields';
import { readResponse } from 'holdfast/wire';
import { BatchingStore, defaultBatching } from '../batching-store.ts';
import { type Exchange, tooLarge } from '../exchange.ts';
import { methodField, objectWith } from '../option-fields.ts';
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

const fields = {
  ledger: objectWith<Ledger>('a Ledger', 'begin'),
  scope: anything<((exchange: Exchange) => string | undefined) | 'public'>(),
  required: flag(),
  methods: list(methodField, ['POST', 'PATCH']),
  wait: duration('0ms'),
  whenLost: word('tell', 'tell', 'reexecute'),
  transactional: flag(),
  lease: duration('30s', undefined, 100),
  heldMax: duration('15m'),
  keep: duration('24h'),
  liveMax: count(10_000, 1),
  bodyMax: count(mebibyte, 0),
  responseMax: count(mebibyte, 0),
  replay: list(text(), []),
  encryption: anything<RecordEncryption>(),
  timeout: duration('35ms'),
};

type Fields = Omit<typeof fields, 'ledger' | 'scope'>;

export interface IdempotencyOptions extends SpecOf<Fields> {
  readonly ledger: Ledger<never>;
  /**
   * Returns the owner of the key, from verified data such as the authenticated user. `'public'`: all callers share one
   * set of keys.
   */
  readonly scope: ((exchange: Exchange) => string | undefined) | 'public';
}

export interface IdempotencyPart extends Part {
  readonly counts: IdempotencyCounts;
  /**
   * Deletes all keys of a scope with their recorded responses, and resolves with their number. Keys of requests that
   * are being executed are not deleted.
   */
  purge(scope: string): Promise<number>;
}

export interface IdempotencyCounts {
  executed: number;
  replayed: number;
  /**
   * Requests that were refused because of their key: it was missing, invalid, reused for another request, in use, of
   * unknown outcome, or the caller had too many keys.
   */
  refused: number;
  /** Requests that were refused because the ledger (the store of idempotency keys) was unavailable. */
  failedClosed: number;
  /** Responses that could not be recorded. When the lease of such a key ends, the outcome of its request is unknown. */
  unrecorded: number;
}

/**
 * With these statuses a handler refuses a request before it changes anything. Such a response is not recorded, and the
 * key becomes free.
 */
const effectlessStatuses = new Set([401, 403, 408, 409, 425, 429]);

const scopeLengthMax = 128;
const pollMs = [50, 250] as const;
const repeatMs = 250;
const waitersMax = 100;
const retrySoon = { 'retry-after': '1' };

const storeUnavailable = problem('store-unavailable', retrySoon);
const inProgress = problem('in-progress', retrySoon);

/**
 * Makes a part of a `guard`. Of all requests with the same Idempotency-Key it executes only one, and sends its response
 * to all of them.
 */
export function idempotency(
  options: IdempotencyOptions,
  environment: { readonly clock?: Clock | undefined; readonly random?: Random | undefined } = {},
): IdempotencyPart {
  const settings = readTable(fields, options as SpecOf<typeof fields>, 'idempotency.');
  const { clock = systemClock, random = systemRandom } = environment;
  const {
    scope: scopeOf,
    keep: keepMs,
    lease: leaseMs,
    liveMax,
    bodyMax,
    responseMax,
    timeout: timeoutMs,
  } = settings;
  const ledger = assertLedger(settings.ledger);
  assertScope(scopeOf);
  const mayReexecute = settings.transactional === true || settings.whenLost === 'reexecute';
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
  const required = settings.required ?? true;
  const counts: IdempotencyCounts = { executed: 0, replayed: 0, refused: 0, failedClosed: 0, unrecorded: 0 };
  const waiters = new Map<string, number>();

  const batching = { ...defaultBatching, timeoutMs };
  const begins = new BatchingStore<Claim, Begun>(
    (claims) => ledger.begin(claims),
    batching,
    clock,
    (begun) => {
      // The ledger's result came after the timeout, and the client has already got a 503. The handler will not run, so
      // the key is freed.
      if (begun.kind === 'acquired') freeUnusedKey(begun);
    },
  );
  const completions = new BatchingStore<Completion, SettlementResult>(
    (all) => ledger.complete(all),
    batching,
    clock,
  );
  const releases = new BatchingStore<Hold, boolean>((holds) => ledger.release(holds), batching, clock);

  /**
   * Submits `item` repeatedly until the ledger has accepted it, or the lease has ended. Without a record, the outcome
   * of the request would be unknown.
   */
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

  /** Frees a key that was locked for a request whose handler was not started. */
  function freeUnusedKey({ hold, attempt }: Begun & { kind: 'acquired' }): void {
    if (attempt === 1) settleLater(releases, hold);
    // Attempt 2 or later: an earlier request may have had an effect, so the key must not be released, which would make
    // the next request attempt 1. Instead the lease is shortened to 1 ms, and the next request continues counting. If
    // the ledger is unavailable, the lease ends later by itself.
    else ledger.extend([hold], 1).catch(() => {});
  }

  async function settle(
    held: HeldKey<unknown>,
    response: HandlerResponse,
  ): Promise<PlainResponse | undefined> {
    held.end();
    if (held.isCommitted) return undefined;
    const { hold } = held;
    if (freesKey(held, response)) {
      if ((await releases.submit(hold)) === undefined) settleLater(releases, hold);
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
    // The lease was lost. If another request may take over the key, only the response of that request counts: the
    // client gets a 409 and can retry. Otherwise this was the only execution, and its response is sent.
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
    // Outgoing calls derive their keys from the hashed key. Two tenants may send the same key, and the services that
    // are called could not distinguish them.
    exchange.idempotencyKey = claim.key;
    exchange.isAmbient = true;
    exchange.addReviewer(responseMax, (response) => settle(held, response));
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
      return decodeResponse(decryptRecord(encryption, begun.record, claim.scope));
    }
    counts.refused++;
    if (begun.kind === 'running') return inProgress;
    if (begun.kind === 'mismatch') return problem('key-reused');
    if (begun.kind === 'unknown') return problem('outcome-unknown');
    if (begun.kind === 'full') return problem('too-many-keys', { 'retry-after': '60' });
    return problem('response-not-stored');
  }

  /**
   * Another request with this key is being executed. Polls the ledger until that request has ended, for at most `wait`,
   * and not beyond the client's deadline.
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
      // The client has disconnected, so reading its body would never end.
      if (exchange.isAbandoned) return clientClosedRequest;
      const body = exchange.readBody(bodyMax);
      return body instanceof Promise ? body.then(claimKey) : claimKey(body);
    },
  };
}

function ledgerScope(scope: string): string {
  return scope.length <= scopeLengthMax ? scope : hash('sha256', scope, 'base64url');
}

/** Whether the handler failed without changing anything, so that the key may be used again. */
function freesKey(held: HeldKey<unknown>, { status, headers }: HandlerResponse): boolean {
  if (status < 400) return false;
  return held.nothingWasDone || effectlessStatuses.has(status) || readResponse(headers).retry === 'safe';
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

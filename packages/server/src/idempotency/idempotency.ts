import { hash } from 'node:crypto';
import type { Begun, Claim, Completion, Hold, Ledger, SettlementResult } from '@holdfast/contracts';
import { type Clock, OptionsError, type Random, systemClock, systemRandom } from 'holdfast';
import { anything, count, duration, flag, list, readTable, type SpecOf, text, word } from 'holdfast/fields';
import { readResponse } from 'holdfast/wire';
import { BatchingStore, defaultLine } from '../batching-store.ts';
import { type Exchange, tooLarge } from '../exchange.ts';
import { able, method } from '../option-fields.ts';
import type { Part } from '../part.ts';
import { pause } from '../pause.ts';
import { problem } from '../problem.ts';
import { clientGone } from '../refusals.ts';
import type { Answer, HandlerAnswer } from '../response.ts';
import { HeldKey, type HoldSettings } from './held-key.ts';
import { readKey } from './idempotency-key.ts';
import { demandSealing, opened, type Sealing, sealed } from './record-encryption.ts';
import { requestFingerprint, storeKey } from './request-fingerprint.ts';
import { decodeAnswer, encodeAnswer, isReplayable } from './response-record.ts';
import 'holdfast/ambient';

const mebibyte = 1024 * 1024;

const fields = {
  ledger: able<Ledger>('a Ledger', 'begin'),
  scope: anything<((exchange: Exchange) => string | undefined) | 'public'>(),
  required: flag(),
  methods: list(method, ['POST', 'PATCH']),
  wait: duration('0ms'),
  whenLost: word('tell', 'tell', 'reexecute'),
  transactional: flag(),
  lease: duration('30s', undefined, 100),
  heldMax: duration('15m'),
  keep: duration('24h'),
  liveMax: count(10_000, 1),
  bodyMax: count(mebibyte, 0),
  answerMax: count(mebibyte, 0),
  replay: list(text(), []),
  sealing: anything<Sealing>(),
  timeout: duration('35ms'),
};

type Fields = Omit<typeof fields, 'ledger' | 'scope'>;

export interface IdempotencyOptions extends SpecOf<Fields> {
  readonly ledger: Ledger<never>;
  /** Whose key it is, from what has been verified; `'public'` where the keys of all callers may meet. */
  readonly scope: ((exchange: Exchange) => string | undefined) | 'public';
}

export interface IdempotencyPart extends Part {
  readonly counts: IdempotencyCounts;
  /**
   * Forgets all keys of a scope with their answers, and says how many: a tenant has left. Requests that are being executed
   * keep theirs.
   */
  purge(scope: string): Promise<number>;
}

export interface IdempotencyCounts {
  executed: number;
  replayed: number;
  /** Refused for the key's sake: missing, invalid, reused, running, unknown, too many. */
  refused: number;
  /** Refused because the ledger was away. */
  failedClosed: number;
  /** Answers that could not be recorded: their keys are of unknown outcome when the lease ends. */
  unrecorded: number;
}

/** Refusals that a handler makes before it does anything: they say nothing about the next try. */
const refusals = new Set([401, 403, 408, 409, 425, 429]);

const scopeLengthMax = 128;
const pollMs = [50, 250] as const;
const repeatMs = 250;
const waitersMax = 100;
const again = { 'retry-after': '1' };

const storeAway = problem('store-unavailable', again);
const inProgress = problem('in-progress', again);

/** A request with the same key is executed once, and answered each time. */
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
    answerMax,
    timeout: timeoutMs,
  } = settings;
  const ledger = demandLedger(settings.ledger);
  demandScope(scopeOf);
  const mayReexecute = settings.transactional === true || settings.whenLost === 'reexecute';
  const alsoReplayed = settings.replay.map((name) => demandReplayable(name.toLowerCase()));
  const sealing = demandSealing(settings.sealing);
  const holdSettings: HoldSettings = {
    sealing,
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

  const line = { ...defaultLine, timeoutMs };
  const begins = new BatchingStore<Claim, Begun>(
    (claims) => ledger.begin(claims),
    line,
    clock,
    (begun) => {
      // The request was answered with 503 meanwhile.
      if (begun.kind === 'acquired') giveBack(begun);
    },
  );
  const completions = new BatchingStore<Completion, SettlementResult>((all) => ledger.complete(all), line, clock);
  const releases = new BatchingStore<Hold, boolean>((holds) => ledger.release(holds), line, clock);

  /** Goes on asking until the lease is over: what was done is worth more than one try. */
  async function settleLater<Ask, Result>(to: BatchingStore<Ask, Result>, ask: Ask): Promise<void> {
    const until = clock.now() + leaseMs;
    while ((await to.ask(ask)) === undefined) {
      if (clock.now() >= until) {
        counts.unrecorded++;
        return;
      }
      await pause(clock, repeatMs);
    }
  }

  /** Gives up a key for which this request did nothing. */
  function giveBack({ hold, attempt }: Begun & { kind: 'acquired' }): void {
    if (attempt === 1) settleLater(releases, hold);
    // An earlier request may have done something. A released key would be attempt 1 of the next request; a lease that ends now
    // makes it attempt 3. Where the ledger is away, the lease ends by itself.
    else ledger.extend([hold], 1).catch(() => {});
  }

  async function settle(held: HeldKey<unknown>, answer: HandlerAnswer): Promise<Answer | undefined> {
    held.end();
    if (held.isCommitted) return undefined;
    const { hold } = held;
    if (leavesNothing(held, answer)) {
      if ((await releases.ask(hold)) === undefined) settleLater(releases, hold);
      return undefined;
    }
    const { status, headers, body } = answer;
    const record =
      body === undefined
        ? undefined
        : sealed(sealing, encodeAnswer({ status, headers, body }, alsoReplayed), hold.scope);
    const completion = { hold, record, keepMs };
    const settled = await completions.ask(completion);
    if (settled === undefined) settleLater(completions, completion);
    if (settled === undefined || settled.took) return undefined;
    counts.unrecorded++;
    // Another request has the key: its answer is the one that counts, and the client can have it soon. Where nobody
    // takes over, this was the only execution, and its answer is the truth.
    return mayReexecute ? inProgress : undefined;
  }

  function execute(
    exchange: Exchange,
    key: string,
    claim: Claim,
    begun: Begun & { kind: 'acquired' },
  ): undefined {
    counts.executed++;
    const held = new HeldKey(key, claim, begun, ledger, exchange, holdSettings);
    exchange.idempotent = held;
    // Not the key as it was sent: two tenants may have sent the same, and whoever is called for them knows only us.
    exchange.idempotencyKey = claim.key;
    exchange.isAmbient = true;
    exchange.holdAnswer(answerMax, (answer) => settle(held, answer));
  }

  async function begin(exchange: Exchange, key: string, claim: Claim): Promise<Answer | undefined> {
    let begun = await begins.ask(claim);
    if (begun?.kind === 'running' && settings.wait > 0) begun = await waitFor(exchange, claim, begun);
    if (begun === undefined) {
      counts.failedClosed++;
      return storeAway;
    }
    if (begun.kind === 'acquired') {
      if (!exchange.isAbandoned) return execute(exchange, key, claim, begun);
      giveBack(begun);
      return clientGone;
    }
    if (begun.kind === 'done' && begun.record !== undefined) {
      counts.replayed++;
      return decodeAnswer(opened(sealing, begun.record, claim.scope));
    }
    counts.refused++;
    if (begun.kind === 'running') return inProgress;
    if (begun.kind === 'mismatch') return problem('key-reused');
    if (begun.kind === 'unknown') return problem('outcome-unknown');
    if (begun.kind === 'full') return problem('too-many-keys', { 'retry-after': '60' });
    return problem('response-not-stored');
  }

  /** Looks again and again, as long as the route says and the client waits. */
  async function waitFor(exchange: Exchange, claim: Claim, running: Begun): Promise<Begun | undefined> {
    const waiting = waiters.get(claim.key) ?? 0;
    if (waiting >= waitersMax) return running;
    waiters.set(claim.key, waiting + 1);
    try {
      const until = Math.min(clock.now() + settings.wait, exchange.patienceEndsAt);
      let begun: Begun | undefined = running;
      for (let step: number = pollMs[0]; begun?.kind === 'running'; step = Math.min(step * 1.5, pollMs[1])) {
        const delayMs = step * (0.75 + random() / 2);
        if (clock.now() + delayMs > until || exchange.isAbandoned) return running;
        await pause(clock, delayMs);
        begun = await begins.ask(claim);
      }
      return begun;
    } finally {
      const left = waiters.get(claim.key)! - 1;
      if (left > 0) waiters.set(claim.key, left);
      else waiters.delete(claim.key);
    }
  }

  function refuse(answer: Answer): Answer {
    counts.refused++;
    return answer;
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

      const go = (body: Awaited<ReturnType<Exchange['readBody']>>) => {
        if (exchange.isAbandoned) return clientGone;
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
      // The body of a request whose client has disconnected never ends.
      if (exchange.isAbandoned) return clientGone;
      const body = exchange.readBody(bodyMax);
      return body instanceof Promise ? body.then(go) : go(body);
    },
  };
}

function ledgerScope(scope: string): string {
  return scope.length <= scopeLengthMax ? scope : hash('sha256', scope, 'base64url');
}

/** Whether the key may be free again, as if it had never been used. */
function leavesNothing(held: HeldKey<unknown>, { status, headers }: HandlerAnswer): boolean {
  if (status < 400) return false;
  return held.nothingWasDone || refusals.has(status) || readResponse(headers).retry === 'safe';
}

function demandLedger(ledger: Ledger | undefined): Ledger {
  if (typeof ledger?.begin === 'function') return ledger;
  throw new OptionsError('idempotency.ledger', ledger, 'a Ledger');
}

function demandScope(
  scope: unknown,
): asserts scope is 'public' | ((exchange: Exchange) => string | undefined) {
  if (scope === 'public' || typeof scope === 'function') return;
  throw new OptionsError('idempotency.scope', scope, 'a function that tells whose key it is, or "public"');
}

function demandReplayable(name: string): string {
  if (isReplayable(name)) return name;
  throw new OptionsError('idempotency.replay', name, 'headers that are not meant for one caller alone');
}

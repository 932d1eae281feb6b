import { hash } from 'node:crypto';
import type { Claim, Hold, Ledger, Payload, SettlementResult } from '@holdfast/contracts';
import { type Clock, HoldfastError, Timer, withAmbient } from 'holdfast';
import type { Exchange } from '../exchange.ts';
import type { PlainResponse } from '../response.ts';
import { decryptRecord, encryptRecord, type RecordEncryption } from './record-encryption.ts';
import { assertResponse, encodeResponse } from './response-record.ts';

/**
 * The lock of the idempotency key was lost, so another request may run with this key. The handler should roll
 * back its effects.
 */
export class LeaseLostError extends HoldfastError {
  constructor() {
    super('HOLDFAST_LEASE_LOST', 'the idempotency key was lost to another request while this one ran');
  }
}

/** What a handler can do with its idempotency key. */
export interface IdempotentRequest<Tx = unknown> {
  /** The key as the client sent it. */
  readonly key: string;
  /**
   * How many requests were started with this key, from 1. Above 1, the outcome of an earlier request is
   * unknown.
   */
  readonly attempt: number;
  /**
   * Runs `effect` and records its response in one database transaction. The handler must send the response
   * that the promise resolves with.
   */
  commit(effect: (tx: Tx) => PlainResponse | Promise<PlainResponse>): Promise<PlainResponse>;
  /**
   * Runs a step of the handler once per key. If an earlier request completed the step, its recorded result
   * (as JSON) is returned.
   */
  phase<T>(name: string, step: () => Promise<T>): Promise<T>;
  /** Like `phase`, but the effect of the step and its result are stored in one transaction. */
  phaseInTransaction<T>(name: string, step: (tx: Tx) => T | Promise<T>): Promise<T>;
  /**
   * Call it when the handler has changed nothing. If the request fails after that, its key is unlocked for a
   * retry.
   */
  nothingDone(): void;
}

export interface HeldKeySettings {
  readonly encryption: RecordEncryption | undefined;
  readonly leaseMs: number;
  readonly keepMs: number;
  /** The longest time that a running handler keeps its key locked. */
  readonly heldMaxMs: number;
  readonly mayReexecute: boolean;
  readonly alsoReplayed: readonly string[];
}

/**
 * An idempotency key that this request has locked. The lock has a lease (time limit), which is extended while
 * the handler runs.
 */
export class HeldKey<Tx> implements IdempotentRequest<Tx> {
  readonly key: string;
  readonly attempt: number;
  readonly hold: Hold;
  readonly claim: Claim;
  nothingWasDone = false;
  /** True: `commit` was called, so its effect may be stored although no result has arrived yet. */
  isCommitBegun = false;
  isCommitted = false;
  isLost = false;

  readonly #ledger: Ledger<Tx>;
  readonly #exchange: Exchange;
  readonly #clock: Clock;
  readonly #settings: HeldKeySettings;
  #phases: readonly Hold[] = [];
  readonly #extendsUntil: number;
  readonly #timer: Timer;

  constructor(
    key: string,
    claim: Claim,
    acquired: { readonly hold: Hold; readonly attempt: number },
    ledger: Ledger<Tx>,
    exchange: Exchange,
    settings: HeldKeySettings,
  ) {
    this.key = key;
    this.claim = claim;
    this.hold = acquired.hold;
    this.attempt = acquired.attempt;
    this.#ledger = ledger;
    this.#exchange = exchange;
    this.#clock = exchange.clock;
    this.#settings = settings;
    const now = this.#clock.now();
    this.#extendsUntil = now + settings.heldMaxMs;
    this.#timer = new Timer(this.#clock, (at) => this.#extendLease(at));
    this.#timer.setAt(now + settings.leaseMs / 3);
  }

  nothingDone(): void {
    this.nothingWasDone = true;
  }

  async commit(effect: (tx: Tx) => PlainResponse | Promise<PlainResponse>): Promise<PlainResponse> {
    let response!: PlainResponse;
    this.isCommitBegun = true;
    await this.#complete(this.hold, effect, (made) => {
      assertResponse(made);
      response = made;
      return this.#encrypted(encodeResponse(made, this.#settings.alsoReplayed));
    });
    this.isCommitted = true;
    return response;
  }

  async phase<T>(name: string, step: () => Promise<T>): Promise<T> {
    const begun = await this.#begin<T>(name);
    if ('result' in begun) return begun.result;
    const result = await withAmbient({ idempotencyKey: begun.key }, step);
    const record = this.#encrypted(JSON.stringify(result) ?? '');
    const [settled] = await this.#ledger.complete([
      { hold: begun.hold, record, keepMs: this.#settings.keepMs },
    ]);
    this.#assertTook(settled!);
    return result;
  }

  async phaseInTransaction<T>(name: string, step: (tx: Tx) => T | Promise<T>): Promise<T> {
    const begun = await this.#begin<T>(name);
    if ('result' in begun) return begun.result;
    let result!: T;
    await this.#complete(begun.hold, step, (made) => {
      result = made;
      return this.#encrypted(JSON.stringify(made) ?? '');
    });
    return result;
  }

  end(): void {
    this.#timer.clear();
  }

  #extendLease(now: number): void {
    const { leaseMs } = this.#settings;
    if (now >= this.#extendsUntil) return;
    this.#timer.setAt(now + leaseMs / 3);
    this.#ledger.extend([this.hold, ...this.#phases], leaseMs).then(
      ([kept]) => {
        if (!kept && !this.isCommitted && this.#timer.isSet) this.#lose();
      },
      // The store did not answer. The next extension shows whether the lease is lost.
      () => {},
    );
  }

  async #begin<T>(name: string): Promise<{ result: T } | { hold: Hold; key: string }> {
    if (this.isLost) throw new LeaseLostError();
    const { liveMax: _, ...claim } = this.claim;
    const key = `${claim.key}/${name}`;
    const whenLost = this.#settings.mayReexecute ? 'takeOver' : 'tell';
    const [begun] = await this.#ledger.begin([{ ...claim, key, whenLost }]);
    if (begun?.kind === 'done') {
      return {
        result: decodeResult<T>(decryptRecord(this.#settings.encryption, begun.record ?? '', claim.scope)),
      };
    }
    if (begun?.kind === 'acquired') {
      this.#phases = [...this.#phases, begun.hold];
      return { hold: begun.hold, key: hash('sha256', key, 'base64url') };
    }
    // Another request runs this phase (a part of the handler's work that is recorded under the key). So that
    // request has taken over the key.
    throw new LeaseLostError();
  }

  async #complete<T>(
    hold: Hold,
    effect: (tx: Tx) => T | Promise<T>,
    toRecord: (made: T) => Payload,
  ): Promise<void> {
    const { keepMs } = this.#settings;
    // This function is synchronous if `effect` is, because SQLite has only synchronous transactions.
    const commit = (tx: Tx) => {
      const made = effect(tx);
      return made instanceof Promise ? made.then(toRecord) : toRecord(made);
    };
    const [settled] = await this.#ledger.complete([{ hold, record: undefined, keepMs, commit }]);
    if (settled?.because === 'commit_failed') {
      this.nothingWasDone = true;
      throw settled.error;
    }
    this.#assertTook(settled!);
  }

  #encrypted(record: Payload): Payload {
    return encryptRecord(this.#settings.encryption, record, this.claim.scope);
  }

  #assertTook({ took }: SettlementResult): void {
    if (took) return;
    this.#lose();
    throw new LeaseLostError();
  }

  #lose(): void {
    this.isLost = true;
    this.end();
    this.#exchange.abort(new LeaseLostError());
  }
}

function decodeResult<T>(record: Payload): T {
  const text = typeof record === 'string' ? record : Buffer.from(record).toString();
  return text === '' ? (undefined as T) : JSON.parse(text);
}

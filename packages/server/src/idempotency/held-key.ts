import { hash } from 'node:crypto';
import type { Claim, Hold, Ledger, Payload, SettlementResult } from '@holdfast/contracts';
import { type Clock, HoldfastError, Timer, withAmbient } from 'holdfast';
import type { Exchange } from '../exchange.ts';
import type { PlainResponse } from '../response.ts';
import { decryptRecord, encryptRecord, type RecordEncryption } from './record-encryption.ts';
import { encodeResponse } from './response-record.ts';

/**
 * The lease of the idempotency key was lost, so another request may be executing with the same key. The effects of this
 * request must not be kept.
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
   * 1 for the first request with this key. Above 1, an earlier request was started with the key and its outcome was not
   * recorded.
   */
  readonly attempt: number;
  /**
   * Runs `effect` and records the response that it returns, in one transaction of the ledger's database: either both
   * are committed or neither. The handler must send the response with which the promise resolves. If `effect` throws,
   * the transaction is rolled back and the error is thrown.
   */
  commit(effect: (tx: Tx) => PlainResponse | Promise<PlainResponse>): Promise<PlainResponse>;
  /**
   * Runs a step of the handler, unless an earlier request with the same key has completed it: then the recorded result
   * is returned. Results are recorded as JSON. Outgoing calls inside the step derive their idempotency keys from a key
   * of the step, which is the same in each request with this idempotency key.
   */
  phase<T>(name: string, step: () => Promise<T>): Promise<T>;
  /** Like `phase`, but the effect of the step and the record of its result are committed in one transaction. */
  phaseInTransaction<T>(name: string, step: (tx: Tx) => T | Promise<T>): Promise<T>;
  /**
   * Call it when the handler has changed nothing. If the request then fails, its key becomes free, and the request may
   * be sent again.
   */
  nothingDone(): void;
}

export interface HeldKeySettings {
  readonly encryption: RecordEncryption | undefined;
  readonly leaseMs: number;
  readonly keepMs: number;
  /** While the handler runs, its lease is extended for at most this long. */
  readonly heldMaxMs: number;
  readonly mayReexecute: boolean;
  readonly alsoReplayed: readonly string[];
}

/**
 * An idempotency key that this request has locked. Its lease is extended while the handler runs, until the outcome is
 * recorded.
 */
export class HeldKey<Tx> implements IdempotentRequest<Tx> {
  readonly key: string;
  readonly attempt: number;
  readonly hold: Hold;
  readonly claim: Claim;
  /** The handler has changed nothing, or its changes were rolled back, so the key may become free. */
  nothingWasDone = false;
  /** The handler's effect and its response are committed. */
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
    await this.#complete(this.hold, effect, (made) => {
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

  /** Stops extending the lease. Called when the handler has ended. */
  end(): void {
    this.#timer.clear();
  }

  /** Extends the lease. The timer calls it each time a third of the lease has passed. */
  #extendLease(now: number): void {
    const { leaseMs } = this.#settings;
    if (now >= this.#extendsUntil) return;
    this.#timer.setAt(now + leaseMs / 3);
    this.#ledger.extend([this.hold, ...this.#phases], leaseMs).then(
      ([kept]) => {
        if (!kept && !this.isCommitted && this.#timer.isSet) this.#lose();
      },
      // The ledger (the store of idempotency keys) is unavailable. The next extension, or the final record, will show
      // whether the lease is lost.
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
    // Another request runs this phase. That is possible only if this request has lost its lease of the key.
    throw new LeaseLostError();
  }

  async #complete<T>(
    hold: Hold,
    effect: (tx: Tx) => T | Promise<T>,
    toRecord: (made: T) => Payload,
  ): Promise<void> {
    const { keepMs } = this.#settings;
    // This function is synchronous if `effect` is synchronous, because some databases (SQLite) have only synchronous
    // transactions.
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

import { hash } from 'node:crypto';
import type { Claim, Hold, Ledger, Payload, SettlementResult } from '@holdfast/contracts';
import { Alarm, type Clock, HoldfastError, withAmbient } from 'holdfast';
import type { Exchange } from '../exchange.ts';
import type { Answer } from '../response.ts';
import { opened, type Sealing, sealed } from './record-encryption.ts';
import { encodeAnswer } from './response-record.ts';

/** Another request has the key now, or may have: what this one does must not count. */
export class LeaseLostError extends HoldfastError {
  constructor() {
    super('HOLDFAST_LEASE_LOST', 'the idempotency key was lost to another request while this one ran');
  }
}

/** What a handler can say and do about its key. */
export interface IdempotentRequest<Tx = unknown> {
  /** As the client sent it. */
  readonly key: string;
  /** Above 1: a request before this one held the key and did not end. */
  readonly attempt: number;
  /**
   * Makes the effect and records its answer in one transaction of the ledger: both are there, or neither. Then send
   * what it gives. Throws what `effect` threw, with everything undone.
   */
  commit(effect: (tx: Tx) => Answer | Promise<Answer>): Promise<Answer>;
  /**
   * A step that is not done twice: where a request before this one has done it, its result is given instead. Results
   * are kept as JSON. Calls inside have a key of their own, the same each time.
   */
  phase<T>(name: string, step: () => Promise<T>): Promise<T>;
  /** As `phase`, with effect and mark in one transaction. */
  phaseInTransaction<T>(name: string, step: (tx: Tx) => T | Promise<T>): Promise<T>;
  /** Says that nothing was done: a failure then frees the key, and the request may be repeated. */
  nothingDone(): void;
}

export interface HoldSettings {
  readonly sealing: Sealing | undefined;
  readonly leaseMs: number;
  readonly keepMs: number;
  /** A handler that does not end in this time is no longer waited for. */
  readonly heldMaxMs: number;
  readonly mayReexecute: boolean;
  readonly alsoReplayed: readonly string[];
}

/** A key in hand: kept alive while the handler runs, and given up with an outcome. */
export class HeldKey<Tx> extends Alarm implements IdempotentRequest<Tx> {
  readonly key: string;
  readonly attempt: number;
  readonly hold: Hold;
  readonly claim: Claim;
  /** The key may be free again: nothing was done, or it was undone. */
  nothingWasDone = false;
  /** Effect and answer are on record. */
  isCommitted = false;
  isLost = false;

  readonly #ledger: Ledger<Tx>;
  readonly #exchange: Exchange;
  readonly #clock: Clock;
  readonly #settings: HoldSettings;
  #phases: readonly Hold[] = [];
  readonly #beatsUntil: number;

  constructor(
    key: string,
    claim: Claim,
    acquired: { readonly hold: Hold; readonly attempt: number },
    ledger: Ledger<Tx>,
    exchange: Exchange,
    settings: HoldSettings,
  ) {
    super();
    this.key = key;
    this.claim = claim;
    this.hold = acquired.hold;
    this.attempt = acquired.attempt;
    this.#ledger = ledger;
    this.#exchange = exchange;
    this.#clock = exchange.clock;
    this.#settings = settings;
    const now = this.#clock.now();
    this.#beatsUntil = now + settings.heldMaxMs;
    this.#clock.set(this, now + settings.leaseMs / 3);
  }

  nothingDone(): void {
    this.nothingWasDone = true;
  }

  async commit(effect: (tx: Tx) => Answer | Promise<Answer>): Promise<Answer> {
    let answer!: Answer;
    await this.#complete(this.hold, effect, (made) => {
      answer = made;
      return this.#sealed(encodeAnswer(made, this.#settings.alsoReplayed));
    });
    this.isCommitted = true;
    return answer;
  }

  async phase<T>(name: string, step: () => Promise<T>): Promise<T> {
    const begun = await this.#begin<T>(name);
    if ('result' in begun) return begun.result;
    const result = await withAmbient({ idempotencyKey: begun.key }, step);
    const record = this.#sealed(JSON.stringify(result) ?? '');
    const [settled] = await this.#ledger.complete([
      { hold: begun.hold, record, keepMs: this.#settings.keepMs },
    ]);
    this.#ensure(settled!);
    return result;
  }

  async phaseInTransaction<T>(name: string, step: (tx: Tx) => T | Promise<T>): Promise<T> {
    const begun = await this.#begin<T>(name);
    if ('result' in begun) return begun.result;
    let result!: T;
    await this.#complete(begun.hold, step, (made) => {
      result = made;
      return this.#sealed(JSON.stringify(made) ?? '');
    });
    return result;
  }

  /** The handler is done with it. */
  end(): void {
    this.#clock.clear(this);
  }

  /** A third of the lease has passed, and the handler still runs. */
  override ring(now: number): void {
    const { leaseMs } = this.#settings;
    if (now >= this.#beatsUntil) return;
    this.#clock.set(this, now + leaseMs / 3);
    this.#ledger.extend([this.hold, ...this.#phases], leaseMs).then(
      ([kept]) => {
        if (!kept && !this.isCommitted && this.index >= 0) this.#lose();
      },
      // The ledger is away. The lease may still be there when it is back: the next beat, or the completion, will tell.
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
      return { result: decodeResult<T>(opened(this.#settings.sealing, begun.record ?? '', claim.scope)) };
    }
    if (begun?.kind === 'acquired') {
      this.#phases = [...this.#phases, begun.hold];
      return { hold: begun.hold, key: hash('sha256', key, 'base64url') };
    }
    // Only a request that has lost the key can meet another one in here.
    throw new LeaseLostError();
  }

  async #complete<T>(
    hold: Hold,
    effect: (tx: Tx) => T | Promise<T>,
    toRecord: (made: T) => Payload,
  ): Promise<void> {
    const { keepMs } = this.#settings;
    // Where the engine's transaction is synchronous, so is this.
    const commit = (tx: Tx) => {
      const made = effect(tx);
      return made instanceof Promise ? made.then(toRecord) : toRecord(made);
    };
    const [settled] = await this.#ledger.complete([{ hold, record: undefined, keepMs, commit }]);
    if (settled?.because === 'commit_failed') {
      this.nothingWasDone = true;
      throw settled.error;
    }
    this.#ensure(settled!);
  }

  #sealed(record: Payload): Payload {
    return sealed(this.#settings.sealing, record, this.claim.scope);
  }

  #ensure({ took }: SettlementResult): void {
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

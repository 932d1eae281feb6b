import type { Broker, Ledger, Settlement, SettlementResult, Triage } from '@holdfast/contracts';
import { LEASE_LOST, TopicError } from '@holdfast/contracts';
import { Alarm, type Clock, type Policy } from 'holdfast';
import type { Judge } from './judge.ts';
import { OVER, SETTLING, type Task } from './task.ts';

export interface SettlerSettings<Tx> {
  readonly broker: Broker<Tx>;
  readonly clock: Clock;
  readonly judge: Judge<Tx>;
  /** A policy that retries calls of the store for at most the duration of a lease. */
  readonly store: Policy;
  readonly settleWithinMs: number;
  readonly batchMax: number;
  /**
   * The ledger that records handled events before their results are written to the store. It is only set for
   * engines that cannot write both in one transaction.
   */
  readonly separateLedger: Ledger<Tx> | undefined;
  /**
   * The store of parked events, if it is another store than the broker. A successful replay is reported to it
   * before the replayed event is acknowledged.
   */
  readonly separateTriage: Triage | undefined;
  /**
   * Called if the store could not apply a settlement, for example because `commit` threw. `settlement` is the
   * new one, to be sent instead.
   */
  onRejudged(task: Task, settlement: Settlement<Tx>): void;
  /**
   * Called with the store's answer to a settlement. If the store did not answer, `settled` is `LEASE_LOST`.
   */
  onSettled(task: Task, settlement: Settlement<Tx>, settled: SettlementResult): void;
  onBatch(type: 'settling' | 'settled', count: number): void;
  onFailure(what: string, delayMs: number): void;
}

interface Decided<Tx> {
  readonly task: Task;
  readonly settlement: Settlement<Tx>;
}

/**
 * Sends settlements (the results of events) to the store. It collects them for `settleWithinMs`, so that many
 * settlements share one write.
 */
export class Settler<Tx> extends Alarm {
  readonly #settings: SettlerSettings<Tx>;
  #pending: Decided<Tx>[] = [];
  #sending: Promise<void> | undefined;
  #sent = 0;
  #flushRequested = false;

  constructor(settings: SettlerSettings<Tx>) {
    super();
    this.#settings = settings;
  }

  /** How many settlements are not sent yet, or sent but not answered by the store. */
  get unsettled(): number {
    return this.#pending.length + this.#sent;
  }

  add(task: Task, settlement: Settlement<Tx>): void {
    task.end(SETTLING);
    const { clock, settleWithinMs, batchMax } = this.#settings;
    const count = this.#pending.push({ task, settlement });
    if (count === 1) clock.set(this, clock.now() + settleWithinMs);
    if (count >= batchMax) void this.flush();
  }

  ring(): void {
    void this.flush();
  }

  /**
   * Sends the pending settlements. If a write is in flight, they are sent after that write, all in one write.
   */
  flush(): Promise<void> {
    this.#flushRequested = true;
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined;
    });
    return this.#sending;
  }

  async #sendAll(): Promise<void> {
    while (this.#flushRequested && this.#pending.length > 0) {
      this.#flushRequested = false;
      const batch = this.#pending;
      this.#pending = [];
      this.#settings.clock.clear(this);
      await this.#send(batch);
    }
  }

  async #send(batch: readonly Decided<Tx>[]): Promise<void> {
    const { broker, store, separateLedger, onBatch, onFailure } = this.#settings;
    this.#sent = batch.length;
    onBatch('settling', batch.length);
    const settlements = batch.map(({ settlement }) => (separateLedger ? unmarked(settlement) : settlement));
    const ending = await store.try(
      async () => {
        await this.#writeApart(batch);
        return broker.settle(settlements);
      },
      { onWait: ({ delayMs }) => onFailure('settle', delayMs) },
    );
    if (!ending.ok) onFailure('settle', Infinity);
    for (const [index, decided] of batch.entries()) {
      // Without an answer, it is unknown whether the settlement was applied. If it was not, the event is
      // leased again when its lease ends.
      this.#onResult(decided, ending.ok ? ending.value[index]! : LEASE_LOST);
    }
    this.#sent = 0;
    onBatch('settled', batch.length);
  }

  #onResult({ task, settlement }: Decided<Tx>, settled: SettlementResult): void {
    const { judge, onRejudged, onSettled } = this.#settings;
    const isOpen = task.phase !== OVER;
    if (isOpen && settled.because === 'commit_failed') {
      onRejudged(task, judge.failed(task, settled.error));
    } else if (isOpen && settled.because === 'topic_unknown') {
      const to = settlement.kind === 'reroute' ? settlement.to : task.topic;
      onRejudged(task, judge.failed(task, new TopicError(to, 'was never declared')));
    } else {
      task.end(OVER);
      if (isOpen) task.batch.open -= 1;
      onSettled(task, settlement, settled);
    }
    task.whenSettled?.(settled.took);
    task.whenSettled = undefined;
  }

  async #writeApart(batch: readonly Decided<Tx>[]): Promise<void> {
    const { separateLedger, separateTriage } = this.#settings;
    const acked = batch.filter(({ settlement }) => settlement.kind === 'ack');
    if (separateLedger) {
      const marks = acked.flatMap(({ task, settlement }) =>
        (settlement.marks ?? []).map((handler) => ({ handler, eventId: task.id })),
      );
      if (marks.length > 0) await separateLedger.mark(marks);
    }
    if (separateTriage) {
      const replayed = acked.flatMap(({ task: { id, delivery } }) =>
        delivery.replay === undefined ? [] : [{ id, operation: delivery.replay }],
      );
      if (replayed.length > 0) await separateTriage.resolve(replayed);
    }
  }
}

function unmarked<Tx>({ marks: _, ...settlement }: Settlement<Tx>): Settlement<Tx> {
  return settlement as Settlement<Tx>;
}

import type { Broker, Ledger, Settlement, SettlementResult, Triage } from '@holdfast/contracts';
import { LEASE_LOST, TopicError } from '@holdfast/contracts';
import { Alarm, type Clock, type Policy } from 'holdfast';
import type { Judge } from './judge.ts';
import { OVER, SETTLING, type Task } from './task.ts';

export interface SettlerSettings<Tx> {
  readonly broker: Broker<Tx>;
  readonly clock: Clock;
  readonly judge: Judge<Tx>;
  /** The policy that retries calls of the store, at most for the duration of a lease. */
  readonly store: Policy;
  readonly settleWithinMs: number;
  readonly batchMax: number;
  /**
   * Given for engines that cannot write the marks of handled events together with settlements. The marks are then
   * written to this ledger before the settlements.
   */
  readonly separateLedger: Ledger<Tx> | undefined;
  /**
   * Given if parked events are in another store. Successful replays are reported to this triage before their events are
   * acknowledged.
   */
  readonly separateTriage: Triage | undefined;
  /** Called with the final result of a settlement. If the store did not answer, the result is `LEASE_LOST`. */
  onSettled(task: Task, settlement: Settlement<Tx>, settled: SettlementResult): void;
  onBatch(type: 'settling' | 'settled', count: number): void;
  onFailure(what: string, delayMs: number): void;
}

interface Decided<Tx> {
  readonly task: Task;
  readonly settlement: Settlement<Tx>;
}

/**
 * Sends settlements to the store. It collects settlements for `settleWithinMs`, so that many settlements share one
 * write, and retries a failed write for the duration of a lease.
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

  /** The number of settlements that the store has not answered. */
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
   * Sends the pending settlements in order, one batch at a time. Settlements that are added during a write wait for the
   * next flush; otherwise a fast store would get one write for each settlement.
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
      // Without an answer, the settlement may or may not have been applied. If it was not applied, the event can be
      // leased again when its lease ends.
      this.#onResult(decided, ending.ok ? ending.value[index]! : LEASE_LOST);
    }
    this.#sent = 0;
    onBatch('settled', batch.length);
  }

  #onResult({ task, settlement }: Decided<Tx>, settled: SettlementResult): void {
    const { judge, onSettled } = this.#settings;
    const isOpen = task.phase !== OVER;
    if (isOpen && settled.because === 'commit_failed') {
      this.add(task, judge.failed(task, settled.error));
    } else if (isOpen && settled.because === 'topic_unknown') {
      const to = settlement.kind === 'reroute' ? settlement.to : task.topic;
      this.add(task, judge.failed(task, new TopicError(to, 'was never declared')));
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

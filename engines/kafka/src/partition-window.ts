import { readRuns, writeRuns } from './offset-runs.ts';

/** A record as it was fetched. */
export interface FetchedRecord {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  /** The time of the record, epoch ms. */
  readonly at: number;
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  readonly headers: readonly (readonly [Buffer | null, Buffer | null])[];
  /** It is given from then on, epoch ms. 0: at once. */
  readonly dueAt: number;
  /** It waits much longer than its topic is for. So at `dueAt`, it is sent to the end of its topic again. */
  readonly isSentAgain?: boolean;
}

export type RawRecord = Omit<FetchedRecord, 'dueAt' | 'isSentAgain'>;

/** One delivery of one record. */
export interface KafkaHandle {
  readonly window: PartitionWindow;
  readonly record: FetchedRecord;
}

/** If so many records wait for their time, no more are fetched from this partition. */
const waitingMax = 1000;
/** Nor if the offsets that are done lie so scattered that a commit could not hold them. */
const scatteredMax = 600;

/**
 * What this process has of one partition, from the first offset that is not done on. A commit says that offset, and which
 * offsets above it are done. So no unfinished event is ever committed, and no finished event is repeated.
 */
export class PartitionWindow {
  readonly topic: string;
  readonly partition: number;
  readonly inFlight = new Map<number, KafkaHandle>();
  /** Another process owns the partition now. */
  isLost = false;
  /** The next offset to fetch. */
  position: number;
  /** Every offset below is done. */
  #low: number;
  /** Offsets above `#low` that are done. */
  readonly #done: Set<number>;
  /** Records that were fetched and not given, the next one last. */
  #waiting: FetchedRecord[] = [];

  constructor(topic: string, partition: number, low: number, metadata?: string | null) {
    this.topic = topic;
    this.partition = partition;
    this.#low = low;
    this.#done = new Set(readRuns(low, metadata));
    this.position = low;
  }

  get name(): string {
    return `${this.topic}/${this.partition}`;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  get isFull(): boolean {
    return this.#waiting.length >= waitingMax || this.#done.size >= scatteredMax + this.inFlight.size;
  }

  /** When the next record can be given, epoch ms. */
  get nextDueAt(): number | undefined {
    return this.#waiting.at(-1)?.dueAt;
  }

  get low(): number {
    return this.#low;
  }

  /** How many offsets from `low` to `end` are not done. */
  undone(end: number): number {
    return Math.max(0, end - this.#low - this.#done.size);
  }

  /** What to commit. */
  get progress(): { readonly offset: number; readonly metadata: string } {
    const done = this.#done.size === 0 ? [] : [...this.#done].sort((one, other) => one - other);
    return { offset: this.#low, metadata: writeRuns(this.#low, done) };
  }

  /** Takes what a fetch from `position` has brought. What lies between the records is nothing for us, so it is done. */
  accept(records: readonly FetchedRecord[], nextPosition: number): void {
    let expected = this.position;
    const fresh: FetchedRecord[] = [];
    for (const record of records) {
      if (record.offset < expected) continue;
      for (; expected < record.offset; expected++) this.#done.add(expected);
      expected = record.offset + 1;
      if (!this.#done.has(record.offset) && record.offset >= this.#low) fresh.push(record);
    }
    for (; expected < nextPosition; expected++) this.#done.add(expected);
    this.position = Math.max(this.position, expected);
    this.#advance();
    if (fresh.length > 0)
      this.#waiting = [...this.#waiting, ...fresh].sort((one, other) => -inOrder(one, other));
  }

  /** Takes at most `limit` records that are due. They are in flight until they are completed. */
  take(limit: number, now: number): KafkaHandle[] {
    const taken: KafkaHandle[] = [];
    while (taken.length < limit && (this.nextDueAt ?? Infinity) <= now) {
      const record = this.#waiting.pop()!;
      const handle: KafkaHandle = { window: this, record };
      this.inFlight.set(record.offset, handle);
      taken.push(handle);
    }
    return taken;
  }

  /** The record was not handled: it is given again. */
  putBack(handle: KafkaHandle): void {
    if (this.inFlight.get(handle.record.offset) !== handle) return;
    this.inFlight.delete(handle.record.offset);
    this.#wait(handle.record);
  }

  complete({ record: { offset } }: KafkaHandle): void {
    this.inFlight.delete(offset);
    if (offset >= this.#low) this.#done.add(offset);
    this.#advance();
  }

  /** Kafka no longer has what we wanted to read. It was deleted, or the topic was created anew. */
  restartAt(offset: number): void {
    if (offset < this.#low) this.#done.clear();
    for (const done of this.#done) if (done < offset) this.#done.delete(done);
    this.position = offset;
    this.#low = offset;
    this.#advance();
  }

  #advance(): void {
    while (this.#done.delete(this.#low)) this.#low++;
    this.position = Math.max(this.position, this.#low);
  }

  #wait(record: FetchedRecord): void {
    const after = this.#waiting.findLastIndex((other) => inOrder(record, other) < 0);
    this.#waiting.splice(after + 1, 0, record);
  }
}

function inOrder(one: FetchedRecord, other: FetchedRecord): number {
  return one.dueAt - other.dueAt || one.offset - other.offset;
}

import { readRuns, writeRuns } from './offset-runs.ts';

/** A record from Kafka. */
export interface RawRecord {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  /** The time of the record, epoch ms. */
  readonly at: number;
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  readonly headers: readonly (readonly [Buffer | null, Buffer | null])[];
}

/** When a record can be delivered. */
export interface DeliveryTime {
  /** The record is delivered at this time or later, epoch ms. 0: at once. */
  readonly dueAt: number;
  /**
   * The delay is much longer than the longest tier. At `dueAt`, the record is sent to the end of its topic
   * again.
   */
  readonly isSentAgain?: boolean;
}

export interface FetchedRecord extends RawRecord, DeliveryTime {}

/** This function names every field. It runs for each record, and an object spread would be slower. */
export function withTime(record: RawRecord, { dueAt, isSentAgain = false }: DeliveryTime): FetchedRecord {
  const { topic, partition, offset, at, key, value, headers } = record;
  return { topic, partition, offset, at, key, value, headers, dueAt, isSentAgain };
}

/** Copies the bytes of a record that waits. Otherwise they would keep the whole response of the server in memory. */
export function detached({ key, value, headers, ...place }: RawRecord): RawRecord {
  const copy = (bytes: Buffer | null) => bytes && Buffer.from(bytes);
  return {
    ...place,
    key: copy(key),
    value: copy(value),
    headers: headers.map(([name, text]) => [copy(name), copy(text)] as const),
  };
}

/** One delivery of one record. The window is the one of the record's partition. */
export interface KafkaHandle {
  readonly window: PartitionWindow;
  readonly record: FetchedRecord;
}

/** Stop fetching from a partition when this many fetched records wait to be delivered. */
const waitingMax = 1000;
/**
 * Also stop fetching when this many finished offsets are above an unfinished one. A commit lists them in its
 * metadata, and the size of the metadata is limited.
 */
const scatteredMax = 600;

/**
 * The state of one partition in this process. A commit contains the first unfinished offset, and the list of
 * finished offsets above it. So the next owner of the partition repeats only unfinished events.
 */
export class PartitionWindow {
  readonly topic: string;
  readonly partition: number;
  readonly inFlight = new Map<number, KafkaHandle>();
  /** True: another process owns the partition. */
  isLost = false;
  /** The next offset to fetch. */
  position: number;
  /** The offset after the last committed record of the partition, as the latest answer of the server said. */
  end = Infinity;
  /** Every offset below this one is finished. */
  #low: number;
  /** The finished offsets above `#low`. */
  readonly #done: Set<number>;
  /** Records that were fetched and not yet delivered. The next record to deliver is the last element. */
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

  /** False: all records that the server had at the last fetch were fetched. */
  get hasMore(): boolean {
    return this.position < this.end;
  }

  /** When the next record can be delivered, epoch ms. */
  get nextDueAt(): number | undefined {
    return this.#waiting.at(-1)?.dueAt;
  }

  get low(): number {
    return this.#low;
  }

  /** How many offsets from `low` to `end` are not finished. */
  undone(end: number): number {
    return Math.max(0, end - this.#low - this.#done.size);
  }

  get progress(): { readonly offset: number; readonly metadata: string } {
    const done = this.#done.size === 0 ? [] : [...this.#done].sort((one, other) => one - other);
    return { offset: this.#low, metadata: writeRuns(this.#low, done) };
  }

  /**
   * Adds the records of a fetch from `position`. Offsets that have no record for this group, such as end
   * markers of transactions, count as finished.
   */
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

  /** Takes at most `limit` records that are due. They are in flight until `complete` or `putBack`. */
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

  /** Puts an unhandled record back, so that it is delivered again. */
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

  /**
   * Continues at `offset`. Call this if Kafka has no record at `position`: the record was deleted, or the
   * topic was created again.
   */
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

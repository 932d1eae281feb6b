import type { Arrival, Intake, IntakeListener } from '@holdfast/contracts/carrier';
import { type Clock, sleep, Timer } from 'holdfast';
import { CommitQueue } from './commit-queue.ts';
import { ConsumerGroup } from './consumer-group.ts';
import { type Fetched, fetchRecords, listOffsets } from './fetch.ts';
import { type Assigned, isPassing, type KafkaClient, type Line, type TopicLayout } from './kafka-client.ts';
import { committedOffsetsSoon } from './offsets.ts';
import {
  type DeliveryTime,
  detached,
  type FetchedRecord,
  type KafkaHandle,
  PartitionWindow,
  type RawRecord,
  withTime,
} from './partition-window.ts';
import { Pause } from './pause.ts';
import { toArrival } from './wire-record.ts';

export interface ReaderSettings {
  readonly client: KafkaClient;
  readonly clock: Clock;
  readonly group: string;
  readonly sessionTimeoutMs: number;
  readonly rebalanceTimeoutMs: number;
  readonly listener: IntakeListener<KafkaHandle>;
  topics(): Promise<readonly string[]>;
  /**
   * Returns the time from which on a record can be delivered; `undefined` if it is a retry of another group.
   */
  timeOf(record: RawRecord): DeliveryTime | undefined;
  /** Sends a copy of a record to the end of its topic. Resolves when the copy is stored. */
  sendAgain(record: FetchedRecord): Promise<void>;
  onError(error: unknown): void;
}

const pollMs = 500;
const pauseMs = 50;
/**
 * A fetch requests this many bytes, divided among the partitions of this reader. For a partition, these are at least
 * `partitionBytesMin` and at most `partitionBytesMax`. At the end of the limit, the server sends a part of a batch, which
 * is useless, and a batch has up to 1 MB. So small limits waste much of the traffic.
 */
const fetchBytes = 8 * 1024 * 1024;
const partitionBytesMin = 1024 * 1024;
const partitionBytesMax = 3 * 1024 * 1024;
/**
 * If no consumer wants records (credit 0) for this many ms, this process leaves the group. After that, other
 * processes get its partitions.
 */
const idleMs = 30_000;

/**
 * Reads Kafka topics as a member of a consumer group. `credit` is how many records the consumers want; the
 * reader delivers no more than that.
 */
export class TopicReader implements Intake {
  readonly windows = new Map<string, PartitionWindow>();
  readonly #settings: ReaderSettings;
  readonly #group: ConsumerGroup;
  /** A long poll blocks its connection. So `look` uses another connection, `#lookLine`. */
  readonly #pollLine: Line;
  readonly #lookLine: Line;
  readonly #dueTimer: Timer;
  readonly #pause: Pause;
  readonly #commits: CommitQueue;
  readonly #idleTimer: Timer;
  #layouts: ReadonlyMap<string, TopicLayout> = new Map();
  #credit = 0;
  /**
   * The credit (how many records the consumers want) at the start of the current poll. The records of this
   * poll are delivered even if the credit has become 0 since then.
   */
  #pollCredit = 0;
  #polling: Promise<void> | undefined;
  /** The current fetch of `#poll`. If it is long, it waits on the server for new records. */
  #polled: { readonly isLong: boolean; readonly fetched: Promise<void> } | undefined;
  #isClosed = false;

  constructor(settings: ReaderSettings) {
    const { client, clock } = settings;
    this.#settings = settings;
    this.#pollLine = client.newLine();
    this.#lookLine = client.newLine();
    this.#dueTimer = new Timer(clock, () => this.#give());
    this.#pause = new Pause(clock);
    this.#idleTimer = new Timer(clock, () => void this.#leaveIfIdle());
    this.#group = new ConsumerGroup({
      ...settings,
      assigned: (partitions) => this.#assigned(partitions),
      lost: () => this.#lose([...this.windows.values()]),
    });
    this.#commits = new CommitQueue(clock, (offsets) => this.#group.commit(offsets));
  }

  credit(count: number): void {
    this.#credit = count;
    if (count === 0) {
      if (!this.#idleTimer.isSet) this.#idleTimer.setIn(idleMs);
      return;
    }
    this.#idleTimer.clear();
    this.#start();
    this.#give();
    this.#pause.end();
  }

  async look(): Promise<void> {
    if (this.#isClosed || this.#room === 0) return;
    await this.#start();
    // Wait for the current poll, if the server answers it at once. Another fetch would bring the same records.
    // Its errors are the concern of the poll.
    if (this.#polled && !this.#polled.isLong) await this.#polled.fetched.catch(() => {});
    const windows = [...this.windows.values()];
    const now = this.#settings.clock.epochMs();
    const hungry = windows.filter(({ isFull }) => !isFull);
    const hasNone = windows.every(({ nextDueAt = Infinity }) => nextDueAt > now);
    if (hasNone && hungry.length > 0) await this.#fetch(this.#lookLine, hungry, 0);
    this.#give();
  }

  /**
   * Marks records as finished, and commits. Returns false for a record whose partition has another owner by
   * now.
   */
  async done(handles: readonly KafkaHandle[]): Promise<boolean[]> {
    for (const handle of handles) {
      if (handle.window.isLost) continue;
      handle.window.complete(handle);
      this.#commits.changed(handle.window);
    }
    await this.#commits.flush();
    return handles.map(({ window }) => !window.isLost);
  }

  release(handles: readonly KafkaHandle[]): void {
    for (const handle of handles) if (!handle.window.isLost) handle.window.putBack(handle);
    this.#pollCredit = 0;
    if (this.#credit === 0) void this.#leaveIfIdle();
  }

  /** True if the message, such as `orders/3/17`, was delivered to this process and is not finished. */
  hasInFlight(messageId: string): boolean {
    const [, name = '', offset] = /^(.*)\/(\d+)$/.exec(messageId) ?? [];
    return this.windows.get(name)?.inFlight.has(Number(offset)) ?? false;
  }

  /**
   * Call this when the list of topics to read has changed. The process joins the group again with the new
   * list.
   */
  topicsChanged(): void {
    this.#group.rejoin();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const timer of [this.#dueTimer, this.#idleTimer]) timer.clear();
    this.#pause.end();
    await this.#commits.flush().catch(this.#settings.onError);
    await this.#group.close();
    await Promise.all([this.#pollLine.close(), this.#lookLine.close()]);
    await this.#polling;
  }

  /** Starts polling and joins the group. Resolves when this process knows which partitions it owns. */
  #start(): Promise<void> {
    this.#polling ??= this.#poll();
    const joined = this.#group.join();
    joined.catch(() => {});
    return joined;
  }

  async #leaveIfIdle(): Promise<void> {
    const isIdle = [...this.windows.values()].every(({ inFlight }) => inFlight.size === 0);
    if (this.#credit > 0 || this.#isClosed) return;
    if (isIdle) await this.#group.leave();
    else this.#idleTimer.setIn(idleMs);
  }

  get #room(): number {
    return Math.max(this.#credit, this.#pollCredit);
  }

  async #poll(): Promise<void> {
    while (!this.#isClosed) {
      const now = this.#settings.clock.epochMs();
      const windows = [...this.windows.values()];
      const idle = windows.filter(({ nextDueAt = Infinity }) => nextDueAt > now);
      const hungry = this.#credit > 0 ? idle.filter(({ isFull }) => !isFull) : [];
      // If a partition has a record that is due, the fetch returns at once.
      const isQuiet = idle.length === windows.length;
      if (hungry.length > 0) {
        this.#pollCredit = this.#credit;
        try {
          const isLong = isQuiet && !hungry.some(({ hasMore }) => hasMore);
          const fetched = this.#fetch(this.#pollLine, hungry, isLong ? pollMs : 0);
          this.#polled = { isLong, fetched };
          await fetched.finally(() => {
            this.#polled = undefined;
          });
          this.#give();
          this.#pollCredit = 0;
        } catch (error) {
          if (this.#isClosed) return;
          if (!isPassing(error)) this.#settings.onError(error);
          await this.#pause.wait(pauseMs);
        }
      }
      if (hungry.length === 0)
        await this.#pause.wait(this.windows.size === 0 || this.#credit === 0 ? idleMs : pauseMs);
      else if (!isQuiet) await this.#pause.wait(pauseMs);
    }
  }

  async #fetch(line: Line, windows: readonly PartitionWindow[], waitMs: number): Promise<void> {
    try {
      const share = Math.floor(fetchBytes / Math.max(windows.length, this.windows.size));
      const fetched = await fetchRecords(line, this.#layouts, windows, {
        waitMs,
        partitionBytesMax: Math.min(partitionBytesMax, Math.max(partitionBytesMin, share)),
      });
      for (const answer of fetched) {
        const window = this.windows.get(`${answer.topic}/${answer.partition}`);
        if (window && windows.includes(window)) await this.#accept(window, answer);
      }
    } catch (error) {
      // The leader of a partition may have changed.
      if (!this.#isClosed) await this.#learnLayouts();
      throw error;
    }
  }

  async #accept(
    window: PartitionWindow,
    { records, nextPosition, end, isOutOfRange }: Fetched,
  ): Promise<void> {
    if (isOutOfRange) {
      const [earliest] = await this.#earliest([window]);
      if (window.position !== earliest) {
        this.#settings.onError(
          new Error(
            `offset ${window.position} of ${window.name} was deleted, reading goes on at ${earliest}`,
          ),
        );
        window.restartAt(earliest!);
      }
      return;
    }
    const ours: FetchedRecord[] = [];
    const now = this.#settings.clock.epochMs();
    for (const record of records) {
      if (record.offset < window.position) continue;
      const time = this.#settings.timeOf(record);
      if (time) ours.push(withTime(time.dueAt > now ? detached(record) : record, time));
    }
    window.accept(ours, nextPosition);
    // After an answer without records, the next poll waits on the server, although the end is not reached.
    window.end = nextPosition > 0 ? end : window.position;
  }

  /**
   * Delivers records that are due. Each partition gets an equal share of the credit (how many records the
   * consumers want).
   */
  #give(): void {
    const { clock, listener } = this.#settings;
    if (this.#isClosed) return;
    const now = clock.epochMs();
    const askedAt = clock.now();
    const arrivals: Arrival<KafkaHandle>[] = [];
    let windows = [...this.windows.values()];
    const room = this.#room;
    while (windows.length > 0 && arrivals.length < room) {
      const share = Math.ceil((room - arrivals.length) / windows.length);
      windows = windows.filter((window) => {
        const taken = window.take(Math.min(share, room - arrivals.length), now);
        for (const handle of taken)
          if (handle.record.isSentAgain) void this.#sendAgain(handle);
          else arrivals.push(toArrival(handle, askedAt));
        return taken.length === share;
      });
    }
    this.#credit = Math.max(0, this.#credit - arrivals.length);
    this.#pollCredit = Math.max(0, this.#pollCredit - arrivals.length);
    const nextDueAt = Math.min(
      ...Array.from(this.windows.values(), (window) => window.nextDueAt ?? Infinity),
    );
    if (nextDueAt < Infinity && nextDueAt > now) this.#dueTimer.setIn(nextDueAt - now);
    if (arrivals.length > 0) listener.arrived(arrivals);
    this.#pause.end();
  }

  async #assigned(partitions: readonly Assigned[]): Promise<void> {
    const names = new Set(
      partitions.flatMap(({ topic, partitions }) => partitions.map((each) => `${topic}/${each}`)),
    );
    const revoked = [...this.windows.values()].filter(({ name }) => !names.has(name));
    if (revoked.length > 0) {
      // Commit finished records before the new owner of the partition reads the committed offsets.
      await this.#commits.flush().catch(this.#settings.onError);
      this.#lose(revoked);
    }
    const added = partitions
      .map(({ topic, partitions }) => ({
        topic,
        partitions: partitions.filter((each) => !this.windows.has(`${topic}/${each}`)),
      }))
      .filter(({ partitions }) => partitions.length > 0);
    if (added.length > 0) await this.#take(added);
    this.#pause.end();
  }

  async #take(added: readonly Assigned[]): Promise<void> {
    const { client, clock, group } = this.#settings;
    await this.#learnLayouts();
    const committed = await committedOffsetsSoon(client, group, added, () => sleep(clock, pauseMs));
    const windows = committed.map(
      ({ topic, partition, offset, metadata }) => new PartitionWindow(topic, partition, offset, metadata),
    );
    const unknown = windows.filter(({ position }) => position < 0);
    const earliest = await this.#earliest(unknown);
    for (const [index, window] of unknown.entries()) window.restartAt(earliest[index]!);
    for (const window of windows) this.windows.set(window.name, window);
  }

  async #earliest(windows: readonly PartitionWindow[]): Promise<number[]> {
    const first = new Map<string, number[]>();
    for (const topic of new Set(windows.map(({ topic }) => topic)))
      first.set(topic, await listOffsets(this.#settings.client, this.#layouts.get(topic)!, 'first'));
    return windows.map(({ topic, partition }) => first.get(topic)![partition]!);
  }

  async #learnLayouts(): Promise<void> {
    const layouts = await this.#settings.client.topics(await this.#settings.topics());
    this.#layouts = new Map(layouts.map((layout) => [layout.name, layout]));
  }

  #lose(windows: readonly PartitionWindow[]): void {
    for (const window of windows) {
      window.isLost = true;
      this.windows.delete(window.name);
      if (window.inFlight.size > 0) this.#settings.listener.lost([...window.inFlight.values()]);
    }
  }

  async #sendAgain(handle: KafkaHandle): Promise<void> {
    const { clock, sendAgain, onError } = this.#settings;
    try {
      await sendAgain(handle.record);
      await this.done([handle]);
    } catch (error) {
      onError(error);
      await sleep(clock, idleMs);
      this.release([handle]);
    }
  }
}

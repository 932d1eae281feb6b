import type { Audit, AuditEntry, Triage } from '@holdfast/contracts';
import { type Clock, Timer } from 'holdfast';
import type { Observer, Snapshot } from './observer.ts';
import { overviewOf, type StoreInfo } from './overview.ts';
import type { WindowName } from './ring.ts';

export interface LiveEvent {
  readonly id: number;
  readonly type: string;
  readonly data: unknown;
}

export interface Reader {
  /** Returns false if the reader is too slow. In this case, the event is dropped. */
  send(event: LiveEvent): boolean;
  readonly window: WindowName;
}

export interface LiveSettings {
  readonly observer: Observer;
  readonly triage: Triage;
  readonly audit: Audit;
  readonly clock: Clock;
  readonly store: StoreInfo;
  onError(error: unknown): void;
}

export interface TailLine {
  readonly at: number;
  readonly state: 'ok' | 'waiting' | 'retrying' | 'parked' | 'refused';
  readonly says: string;
  readonly link: string;
}

/** Events are kept for 30 s, for readers that reconnect. */
const keptMs = 30_000;
const keptMax = 500;
const readersMax = 100;
const linesPerLook = 25;

/** Sends changes to all readers. Changes are computed once, and not for each reader. */
export class Live {
  readonly #settings: LiveSettings;
  readonly #readers = new Set<Reader>();
  readonly #kept: (LiveEvent & { readonly at: number })[] = [];
  readonly #pingTimer: Timer;
  #nextId = 1;
  #unsubscribe: (() => void) | undefined;
  #seenAt = 0;

  constructor(settings: LiveSettings) {
    this.#settings = settings;
    this.#pingTimer = new Timer(settings.clock, () => this.#ping());
  }

  get isFull(): boolean {
    return this.#readers.size >= readersMax;
  }

  get size(): number {
    return this.#readers.size;
  }

  /**
   * Adds a reader, and sends it the events after `lastId`. If some of these events are no longer kept, the
   * reader gets a `reset` event instead. Returns a function that removes the reader.
   */
  add(reader: Reader, lastId: number | undefined): () => void {
    const { observer } = this.#settings;
    this.#readers.add(reader);
    const missed = lastId === undefined ? [] : this.#kept.filter(({ id }) => id > lastId);
    const isGap = lastId !== undefined && (this.#kept[0]?.id ?? this.#nextId) > lastId + 1;
    if (isGap) reader.send(this.#event('reset', {}));
    else for (const event of missed) reader.send(event);
    if (!this.#unsubscribe) {
      this.#seenAt = observer.latest.now;
      this.#unsubscribe = observer.subscribe((snapshot) => void this.#look(snapshot));
      this.#pingTimer.setIn(1000);
    }
    reader.send({
      id: this.#nextId - 1,
      type: 'figures',
      data: this.#figures(reader.window, observer.latest),
    });
    return () => {
      this.#readers.delete(reader);
      if (this.#readers.size > 0) return;
      this.#unsubscribe?.();
      this.#unsubscribe = undefined;
      this.#pingTimer.clear();
    };
  }

  async #look(snapshot: Snapshot): Promise<void> {
    const byWindow = new Map<WindowName, LiveEvent>();
    for (const { window } of this.#readers)
      if (!byWindow.has(window))
        byWindow.set(window, this.#event('figures', this.#figures(window, snapshot)));
    for (const reader of this.#readers) reader.send(byWindow.get(reader.window)!);
    try {
      const lines = await this.#lines(snapshot);
      if (lines.length > 0) this.#broadcast('notices', { lines });
      for (const operation of snapshot.operations.filter(({ endedAt }) => endedAt === undefined))
        this.#broadcast('replay', { id: operation.id, stage: operation.stage, counts: operation.counts });
    } catch (error) {
      this.#settings.onError(error);
    }
  }

  /** The ping tells the page every second that it is connected. */
  #ping(): void {
    const { clock } = this.#settings;
    const ping = { id: this.#nextId - 1, type: 'ping', data: { at: clock.epochMs() } };
    for (const reader of this.#readers) reader.send(ping);
    this.#pingTimer.setIn(1000);
  }

  #figures(window: WindowName, snapshot: Snapshot): unknown {
    return { window, overview: overviewOf(this.#settings.observer, snapshot, window, this.#settings.store) };
  }

  /**
   * Returns the lines since the last call: parked events, acts of people (such as a replay), and changes of
   * circuit breakers.
   */
  async #lines(snapshot: Snapshot): Promise<TailLine[]> {
    const { triage, audit } = this.#settings;
    const from = this.#seenAt;
    this.#seenAt = snapshot.now;
    const parked = await triage.list({ from, to: snapshot.now }, { limit: linesPerLook });
    const acts = await audit.list({ from, to: snapshot.now }, { limit: linesPerLook });
    return [
      ...parked.items.map(
        ({ id, topic, parkedAt, stop, reason, message }): TailLine => ({
          at: parkedAt,
          state: 'parked',
          says: `${topic} ${id.slice(-8)} parked: ${stop}, ${reason}${message === '' ? '' : `: ${message.slice(0, 120)}`}`,
          link: `/parked/${encodeURIComponent(id)}`,
        }),
      ),
      ...acts.items.map(
        (entry: AuditEntry): TailLine => ({
          at: entry.at,
          state: 'waiting',
          says: `${entry.who}: ${entry.what.replaceAll('_', ' ')}, "${entry.why.slice(0, 120)}"`,
          link: `/audit?of=${encodeURIComponent(entry.subjects[0] ?? '')}`,
        }),
      ),
      ...snapshot.changes.map(({ name, from: before, to }): TailLine => {
        const [policy = '', where = ''] = name.split('\n');
        return {
          at: snapshot.now,
          state: to === 'open' ? 'refused' : to === 'half-open' ? 'retrying' : 'ok',
          says: `${policy} at ${where}: breaker ${before} → ${to}`,
          link: `/policies/${encodeURIComponent(policy)}`,
        };
      }),
    ].sort((a, b) => a.at - b.at);
  }

  #broadcast(type: string, data: unknown): void {
    const event = this.#event(type, data);
    const { clock } = this.#settings;
    this.#kept.push({ ...event, at: clock.now() });
    while (this.#kept.length > keptMax || (this.#kept[0] && this.#kept[0].at < clock.now() - keptMs))
      this.#kept.shift();
    for (const reader of this.#readers) reader.send(event);
  }

  #event(type: string, data: unknown): LiveEvent {
    return { id: this.#nextId++, type, data };
  }
}

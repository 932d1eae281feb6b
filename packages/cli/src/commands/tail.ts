import type { AuditEntry, ParkedSummary } from '@holdfast/contracts';
import { consumersOf, policiesOf, processName } from '@holdfast/events';
import { sleep, systemClock } from 'holdfast';
import type { Command, Given } from '../command.ts';
import { errorLine } from '../error-line.ts';
import { msOf } from '../given-values.ts';
import { shortNames } from '../short-ids.ts';
import { type OpenStore, storeFlag, withStore } from '../store.ts';
import { dim, type StyledPiece, styled } from '../styled-text.ts';
import type { Terminal } from '../terminal.ts';
import { oneLine } from '../text-width.ts';
import { date } from '../times.ts';
import { knownTopic } from '../topics.ts';

/**
 * Each look at the store prints at most this many newly parked events and acts (such as a replay). Further
 * events are only counted.
 */
const newestMax = 50;

export const tail: Command = {
  name: 'tail',
  summary: 'events, acts, breakers and processes, live',
  flags: {
    ...storeFlag,
    topic: { value: 'name', many: true, says: 'only parked events, consumers and acts of this topic' },
    every: { value: 'duration', says: 'how often to look; 1s unless given' },
    for: { value: 'duration', says: 'end after so long; never unless given' },
  },
  examples: ['tail', 'tail --topic orders', 'tail --json --for 10m'],
  run: (given, terminal) =>
    withStore(given, terminal, async (engine) => {
      const topics = given.lists.topic ?? [];
      for (const topic of topics) await knownTopic(topic, engine.broker);
      const everyMs = msOf(given, 'every') ?? 1000;
      const endsAt = systemClock.now() + (msOf(given, 'for') ?? Infinity);
      const watch = new Watch(engine, topics);
      await watch.look();
      while (systemClock.now() < endsAt) {
        await sleep(systemClock, Math.max(0, Math.min(everyMs, endsAt - systemClock.now())), terminal.signal);
        for (const news of await watch.look()) print(news, given, terminal);
      }
      return 0;
    }),
};

interface News {
  readonly type: 'parked' | 'act' | 'breaker' | 'consumer' | 'process' | 'more';
  /** Epoch ms by the store's clock. */
  readonly at: number;
  readonly about: string;
  readonly says: string;
  /** The ids in `says`, which a terminal shows shortened. */
  readonly ids?: readonly string[];
  /** The parts of `says`, for programs that read the JSON. */
  readonly fields?: Readonly<Record<string, string>>;
  readonly style: StyledPiece['style'] | undefined;
}

function print({ style, ids = [], fields, ...news }: News, given: Given, terminal: Terminal): void {
  if (given.flags.json) {
    terminal.out(JSON.stringify({ ...news, ...fields }));
    return;
  }
  const short = shortNames(ids, terminal);
  const text = ids.reduce((all, id) => all.replace(id, () => short(id)), news.says);
  const time = date(news.at).slice(11, 23);
  const before = `${time} ${news.type.padEnd(8)} ${news.about} `;
  const room = terminal.columns === undefined ? Infinity : Math.max(20, terminal.columns - before.length);
  const says = room === Infinity ? text : oneLine(text, room);
  terminal.out(
    styled(
      dim(time),
      ` ${news.type.padEnd(8)} ${news.about} `,
      style === undefined ? says : { text: says, style },
    ),
  );
}

/** Finds changes by comparing the store with its state at the last look. */
class Watch {
  readonly #engine: OpenStore;
  readonly #topics: readonly string[];
  #parkedSince = 0;
  #parked = new Set<string>();
  #actsSince = 0;
  #acts = new Set<string>();
  #states: Map<string, Omit<News, 'at'>> | undefined;

  constructor(engine: OpenStore, topics: readonly string[]) {
    this.#engine = engine;
    this.#topics = topics;
  }

  /** Returns what has changed since the last look, the oldest first. The first call returns nothing. */
  async look(): Promise<News[]> {
    const { now } = await this.#engine.controls.active();
    const news = [
      ...(await this.#newlyParked(now)),
      ...(await this.#newActs(now)),
      ...(await this.#changed(now)),
    ];
    return news.sort((a, b) => a.at - b.at);
  }

  async #newlyParked(now: number): Promise<News[]> {
    const { triage } = this.#engine;
    const from = this.#parkedSince;
    const filter = { ...(this.#topics.length > 0 && { topic: this.#topics }), from };
    if (from === 0) {
      this.#parkedSince = now;
      return [];
    }
    const { items, cursor } = await triage.list(filter, { limit: newestMax });
    const fresh = items.filter((item) => !this.#parked.has(keyOf(item)));
    // Another event may be parked in the same millisecond as the latest one. So the next look reads it again.
    this.#parkedSince = Math.max(from, ...items.map(({ parkedAt }) => parkedAt));
    this.#parked = new Set(items.filter(({ parkedAt }) => parkedAt >= this.#parkedSince).map(keyOf));
    const more = cursor === undefined || fresh.length < newestMax ? [] : [await this.#more(filter, now)];
    return [
      ...more,
      ...fresh.map((item) => ({
        type: 'parked' as const,
        at: item.parkedAt,
        about: item.topic,
        says: `${item.id} ${errorLine(item.reason, item.message)} (${item.stop})`,
        ids: [item.id],
        fields: {
          ...{ id: item.id, topic: item.topic, stop: item.stop },
          ...{ reason: item.reason, message: item.message },
        },
        style: 'bad' as const,
      })),
    ];
  }

  async #more(filter: { from: number }, now: number): Promise<News> {
    const count = await this.#engine.triage.count(filter);
    return {
      type: 'more',
      at: now,
      about: 'parked',
      says: `${count} events; the latest ${newestMax} follow`,
      style: 'bad',
    };
  }

  async #newActs(now: number): Promise<News[]> {
    const from = this.#actsSince;
    if (from === 0) {
      this.#actsSince = now;
      return [];
    }
    const { items } = await this.#engine.audit.list({ from }, { limit: newestMax });
    const fresh = items.filter(({ id }) => !this.#acts.has(id));
    this.#actsSince = Math.max(from, ...items.map(({ at }) => at));
    this.#acts = new Set(items.filter(({ at }) => at >= this.#actsSince).map(({ id }) => id));
    return fresh.filter((entry) => this.#concerns(entry)).map(actNews);
  }

  #concerns({ subjects }: AuditEntry): boolean {
    const topics = subjects.filter((subject) => subject.startsWith('topic:'));
    return (
      this.#topics.length === 0 ||
      topics.some((subject) => this.#topics.includes(subject.slice('topic:'.length)))
    );
  }

  async #changed(now: number): Promise<News[]> {
    const before = this.#states;
    const states = await this.#statesNow();
    this.#states = states;
    if (before === undefined) return [];
    const gone = [...before].filter(([name, { type }]) => type === 'process' && !states.has(name));
    return [
      ...[...states.entries()]
        .filter(([name, { says, type }]) =>
          // A new process is always reported, a new breaker or consumer only if something is wrong.
          before.has(name) ? before.get(name)!.says !== says : type === 'process' || says !== wellOf(type),
        )
        .map(([, state]) => ({ at: now, ...state })),
      ...gone.map(([, state]) => ({ at: now, ...state, says: 'is gone', style: 'warning' as const })),
    ];
  }

  async #statesNow(): Promise<Map<string, Omit<News, 'at'>>> {
    const processes = await this.#engine.presence.processes();
    const states = new Map<string, Omit<News, 'at'>>();
    for (const { name, topic, status, waitsFor, process } of consumersOf(processes)) {
      if (this.#topics.length > 0 && !this.#topics.includes(topic)) continue;
      const says = waitsFor.length > 0 ? `${status}: waits for ${waitsFor.join(', ')}` : plainStatus(status);
      const about = `${topic} ${name} in ${processName(process)}`;
      states.set(`consumer ${process.id} ${name} ${topic}`, {
        type: 'consumer',
        about,
        says,
        style: styleOf(says),
      });
    }
    if (this.#topics.length > 0) return states;
    for (const process of processes)
      states.set(process.id, {
        type: 'process',
        about: processName(process),
        says: 'is here',
        style: 'good',
      });
    for (const { name, targets, process } of policiesOf(processes)) {
      for (const { target, breaker, forced } of targets) {
        if (breaker === undefined) continue;
        const says = forced ? `${breaker} (forced)` : breaker;
        const about = `${name} ${target ?? ''} in ${processName(process)}`.replace('  ', ' ');
        states.set(`breaker ${process.id} ${name} ${target}`, {
          type: 'breaker',
          about,
          says,
          style: styleOf(says),
        });
      }
    }
    return states;
  }
}

/** A consumer changes between `idle` and `running` with each event. So both count as `running`. */
function plainStatus(status: string): string {
  return status === 'idle' || status === 'running' ? 'running' : status;
}

function wellOf(type: News['type']): string {
  return type === 'breaker' ? 'closed' : 'running';
}

function styleOf(says: string): StyledPiece['style'] {
  if (says === 'closed' || says === 'running') return 'good';
  return says === 'stopping' || says === 'exclusive' ? 'warning' : 'bad';
}

function keyOf({ id, parkings }: ParkedSummary): string {
  return `${id} ${parkings}`;
}

function actNews({ at, who, what, why, subjects, count }: AuditEntry): News {
  const of = subjects[0] ?? '';
  return {
    type: 'act',
    at,
    about: who,
    says: `${what} ${of}${count > subjects.length ? ` (${count})` : ''}: ${why}`,
    ids: [of.slice(of.indexOf(':') + 1)].filter((id) => id !== ''),
    style: undefined,
  };
}

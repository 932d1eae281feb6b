import { randomUUID } from 'node:crypto';
import {
  type Act,
  type Audit,
  type AuditedAct,
  assertBounds,
  assertEvents,
  assertOrderingChange,
  assertReason,
  assertTopic,
  assertWaitingQuestion,
  type Broker,
  clampMs,
  type Delivery,
  FeatureMissingError,
  type Features,
  type Lease,
  type Leased,
  numberIn,
  type Page,
  type PageRequest,
  type Place,
  type Published,
  placeIn,
  type SizeLimits,
  subject,
  TopicError,
  type Triage,
  timeOrderedId,
  type Waiting,
  type WaitingQuestion,
  type WaitingState,
  whyMissing,
} from '@holdfast/contracts';
import { systemClock, systemRandom } from 'holdfast';
import { noTransaction } from '../features.ts';
import { type RedisClient, type Script, scriptOf } from '../script-runner.ts';
import { assertNothingToUndo, redisControls } from './controls.ts';
import { Doorbell } from './doorbell.ts';
import { bodyOf, envelopeOf, extraOf, triesOf } from './event-text.ts';
import * as inspect from './lua/inspect.ts';
import * as leasing from './lua/lease.ts';
import * as publishing from './lua/publish.ts';
import { leaseName, redisSettler } from './settle.ts';
import { topicKey } from './topic-keys.ts';

export interface RedisBrokerSettings {
  readonly prefix: string;
  readonly keepMarksMs: number;
  readonly limits: SizeLimits;
  readonly features: Features;
  readonly triage: Triage | undefined;
  readonly audit: Audit | undefined;
  onError(error: Error): void;
}

export interface RedisBroker extends Broker<never> {
  /** Closes the connection that waits for notifications about due events. */
  close(): void;
}

/**
 * The answer of the script `lease`. A suspect is an event whose lease expired: it may have crashed its
 * worker.
 */
type LeaseReply = [
  now: string,
  suspects: number,
  nextDueInMs: string,
  controlsVersion: number,
  number: number,
  members: string[],
  dues: string[],
  bodies: string[],
  tries: (string | null)[],
  replays: (string | null)[],
];

type WaitingReply = [now: string, found: [string, string, string, string, string, string][]];

/** Redis runs nothing else during a script, so a script that lists events reads at most 200 events. */
const readTogether = 200;
/** The most events of one lease. Redis runs nothing else during a script, so a script must be short. */
const leasedTogether = 10_000;
const idAt = 16;

/**
 * Stores events in Redis. Every change is one script, which Redis runs atomically. All times are by the clock
 * of Redis.
 */
export function redisBroker(client: RedisClient, settings: RedisBrokerSettings): RedisBroker {
  const { prefix, limits, features, triage, audit } = settings;
  const script = (name: string, lua: string) => scriptOf(client, `broker_${name}`, lua);
  const declare = script('declare', publishing.declare);
  const publish = script('publish', publishing.publish);
  const lease = script('lease', leasing.lease);
  const extend = script('extend', leasing.extend);
  const counts = script('counts', inspect.counts);
  const due = script('due', inspect.due);
  const published = script('published', inspect.published);
  const byDueTime = script('by_due_time', inspect.byDueTime);
  const retryNow = script('retry_now', inspect.retryNow);
  const unblock = script('unblock', inspect.unblock);

  const controls = redisControls(client, { prefix, audit });
  const doorbell = new Doorbell(client, settings.onError);
  const newId = timeOrderedId(systemClock, systemRandom);
  const topicNames = `${prefix}topics`;

  /**
   * Runs a script of a topic. Throws if the topic was never declared: in this case, the script returns null.
   */
  async function ask<Reply>(run: Script, topic: string, args: readonly (string | number)[]): Promise<Reply> {
    const reply: unknown = await run([topicKey(prefix, topic)], args);
    if (reply === null) throw new TopicError(topic, 'was never declared');
    return reply as Reply;
  }

  const settle = redisSettler(client, {
    ...{ prefix, keepMarksMs: settings.keepMarksMs, triage },
    async move(topic, id, body, tries, replay) {
      const extra = JSON.stringify({ t: tries, ...(replay !== undefined && { r: replay }) });
      const reply: unknown = await publish([topicKey(prefix, topic)], [id, body, extra]);
      return reply !== null;
    },
    async onParked(topic) {
      await client.sadd(topicNames, topic);
    },
  });

  /** Writes an audit entry, and then changes the events with a script. */
  async function actOn(
    what: AuditedAct,
    run: Script,
    topic: string,
    ids: readonly string[],
    act: Act,
  ): Promise<boolean[]> {
    assertReason(act);
    assertNothingToUndo(act, audit);
    if (audit) {
      const affected = await ask<number[]>(run, topic, [1, ...ids]);
      const events = ids.filter((_, index) => affected[index] === 1).map((id) => subject('event', id));
      if (events.length > 0)
        await audit.record({
          ...act,
          what,
          subjects: [subject('topic', topic), ...events],
          count: events.length,
        });
    }
    const changed = await ask<number[]>(run, topic, [0, ...ids]);
    return changed.map((each) => each === 1);
  }

  function missing(feature: 'retention'): FeatureMissingError {
    return new FeatureMissingError(feature, whyMissing(features, feature)!);
  }

  return {
    limits,
    controls,
    settle,

    async declare(topic, wanted = {}) {
      assertTopic(topic, wanted);
      if ((wanted.keepSettledMs ?? 0) > 0) throw missing('retention');
      const [ordering, isRefused] = (await declare([topicKey(prefix, topic)], [wanted.ordering ?? ''])) as [
        'none' | 'key',
        number,
      ];
      if (isRefused === 1) assertOrderingChange(topic, ordering, wanted.ordering!, true);
      await Promise.all([client.sadd(topicNames, topic), controls.copyTo(topic)]);
      return { ordering, keepSettledMs: 0 };
    },

    async topics() {
      return (await client.smembers(topicNames)).sort();
    },

    async publish(topic, events) {
      assertEvents(events, limits);
      const args: string[] = [];
      const ids: string[] = [];
      for (const event of events) {
        const id = event.id ?? newId();
        ids.push(id);
        args.push(id, bodyOf(event), extraOf(event));
      }
      const duplicates = await ask<number[]>(publish, topic, args);
      const published: Published[] = ids.map((id) => ({ id, duplicate: false }));
      for (const position of duplicates)
        published[position - 1] = { id: ids[position - 1]!, duplicate: true };
      return published;
    },

    publishWithin() {
      throw new FeatureMissingError('sharedTransaction', noTransaction);
    },

    async lease(topic, request): Promise<Leased> {
      const { owner, limit, leaseMs, bytesMax = Infinity, runMax = 1, retriesShare, suspects } = request;
      const args = [
        ...[
          owner,
          Math.min(Math.floor(limit), leasedTogether),
          clampMs(leaseMs),
          bytesMax === Infinity ? '' : bytesMax,
        ],
        ...[clampMs(runMax), retriesShare ?? '', suspects ? 1 : 0, randomUUID()],
      ];
      const [reply, controlsVersion] = await Promise.all([
        ask<LeaseReply>(lease, topic, args),
        controls.version(),
      ]);
      if (reply[3] < controlsVersion) await controls.copyTo(topic);
      return {
        deliveries: deliveriesOf(topic, owner, reply),
        suspects: reply[1],
        nextDueInMs: reply[2] === '' ? undefined : Number(reply[2]),
        controlsVersion,
      };
    },

    async extend(leases, leaseMs) {
      const answers: boolean[] = leases.map(() => false);
      await Promise.all(
        Array.from(groupByTopic(leases), async ([topic, indexes]) => {
          const names = indexes.map((index) => leaseName(leases[index]!));
          const kept = (await extend([topicKey(prefix, topic)], [clampMs(leaseMs), ...names])) as number[];
          for (const [at, index] of indexes.entries()) answers[index] = kept[at] === 1;
        }),
      );
      return answers;
    },

    async counts(topic) {
      const [now, ready, delayed, behind, held, leased, suspect, blocking, firstDue] = await ask<
        (number | string)[]
      >(counts, topic, []);
      const asOf = Number(now);
      const dueInMs = firstDue === '' ? undefined : Number(firstDue) - asOf;
      return {
        ...{ ready: Number(ready), delayed: Number(delayed), behind: Number(behind), held: Number(held) },
        ...{ leased: Number(leased), suspect: Number(suspect), blocking: Number(blocking) },
        oldestReadyMs: Math.max(0, -(dueInMs ?? 0)),
        nextDueInMs: dueInMs === undefined ? undefined : Math.max(0, dueInMs),
        asOf,
      };
    },

    async waiting(topic, page, question = {}) {
      assertWaitingQuestion(question);
      return question.order === 'due'
        ? listByDueTime(topic, page, question)
        : listPublished(topic, page, question);
    },

    async due(topic, bounds) {
      assertBounds(bounds);
      return ask<number[]>(due, topic, bounds);
    },

    retryNow: (topic, ids, act) => actOn('retry_now', retryNow, topic, ids, act),
    unblock: (topic, ids, act) => actOn('unblock', unblock, topic, ids, act),

    doorbell: (topic, ring) => doorbell.listen(`${topicKey(prefix, topic)}:bell`, ring),

    async history() {
      throw missing('retention');
    },

    close: () => doorbell.close(),
  };

  async function listPublished(
    topic: string,
    { limit, cursor }: PageRequest,
    question: WaitingQuestion,
  ): Promise<Page<Waiting>> {
    let after = cursor === undefined ? 0 : numberIn(cursor);
    const read = (count: number) => ask<WaitingReply>(published, topic, [after, count]);
    const items: Waiting[] = [];
    for (;;) {
      const [now, found] = await read(readTogether);
      for (const row of found) {
        const item = waitingOf(row, topic, Number(now));
        if (isAsked(item, question)) {
          // The page is full and one more event matches, so there is another page.
          if (items.length === limit) return { items, cursor: String(after) };
          items.push(item);
        }
        after = Number(row[0].slice(0, idAt));
      }
      if (found.length < readTogether) return { items, cursor: undefined };
    }
  }

  async function listByDueTime(
    topic: string,
    { limit, cursor }: PageRequest,
    question: WaitingQuestion,
  ): Promise<Page<Waiting>> {
    let after: Place = cursor === undefined ? [-1, ''] : placeIn(cursor);
    const items: Waiting[] = [];
    for (;;) {
      const [now, found] = await ask<WaitingReply>(byDueTime, topic, [...after, readTogether]);
      for (const row of found) {
        const item = waitingOf(row, topic, Number(now));
        if (isAsked(item, question)) {
          if (items.length === limit) return { items, cursor: JSON.stringify(after) };
          items.push(item);
        }
        after = [item.dueAt, row[0]];
      }
      if (found.length < readTogether) return { items, cursor: undefined };
    }
  }
}

function deliveriesOf(topic: string, owner: string, reply: LeaseReply): Delivery[] {
  const [nowText, , , , number, members, dues, bodies, tries, replays] = reply;
  const now = Number(nowText);
  return members.map((member, index): Delivery => {
    const id = member.slice(idAt);
    const sequence = member.slice(0, idAt);
    const tried = triesOf(tries[index]);
    const isParked = tried.diagnosis !== undefined;
    const envelope = envelopeOf(id, sequence, topic, bodies[index]!, replays[index] ?? undefined, isParked);
    return {
      ...envelope,
      ...tried,
      lease: { topic, id, token: `${number}:${sequence}:${dues[index]}:${owner}` },
      attempt: tried.attempts + 1,
      patienceLeftMs: Math.max(0, (envelope.expiresAt ?? Infinity) - now),
    };
  });
}

function groupByTopic(leases: readonly Lease[]): Map<string, number[]> {
  const groups = new Map<string, number[]>();
  for (const [index, { topic }] of leases.entries()) {
    const group = groups.get(topic);
    if (group) group.push(index);
    else groups.set(topic, [index]);
  }
  return groups;
}

function waitingOf(
  [member, queue, due, owner, body, stored]: WaitingReply[1][number],
  topic: string,
  now: number,
): Waiting {
  const { suspect: _, diagnosis, ...state } = triesOf(stored);
  const { id, type, key, tenant, firstSeenAt } = envelopeOf(
    member.slice(idAt),
    member.slice(0, idAt),
    topic,
    body,
    undefined,
    diagnosis !== undefined,
  );
  return {
    ...{ id, type, key, tenant, firstSeenAt },
    ...state,
    state: stateOf(queue, Number(due), now),
    dueAt: Number(due),
    owner: queue === 'leased' ? owner : undefined,
  };
}

function stateOf(queue: string, dueAt: number, now: number): WaitingState {
  switch (queue) {
    case ':fresh':
      return 'ready';
    case ':first':
    case ':retry':
      return dueAt > now ? 'delayed' : 'ready';
    case ':suspects':
      return 'suspect';
    case 'leased':
      return 'leased';
    case ':behind':
      return 'behind';
    case ':blocking':
      return 'blocking';
    default:
      return 'held';
  }
}

function isAsked(item: Waiting, { state, key, tenant }: WaitingQuestion): boolean {
  if (state !== undefined && !(typeof state === 'string' ? [state] : state).includes(item.state))
    return false;
  if (key !== undefined && key !== item.key) return false;
  return tenant === undefined || tenant === item.tenant;
}

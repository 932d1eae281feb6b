import type { AttemptRecord } from '../attempt-record.ts';
import type { Audit } from '../audit.ts';
import type { Broker, LeaseRequest, Settlement, TopicSettings } from '../broker.ts';
import type { Controls } from '../controls.ts';
import type { Engine } from '../engine.ts';
import { type Delivery, type Diagnosis, type Envelope, type NewEvent, parkedTopic } from '../envelope.ts';
import { type ErrorNote, errorNote } from '../error-note.ts';
import type { FeatureName } from '../features.ts';
import type { Journal } from '../journal.ts';
import type { Ledger } from '../ledger.ts';
import type { Presence } from '../presence.ts';
import type { RateLimits } from '../rate-limits.ts';
import { LEASE_LOST, TOOK } from '../settlement-result.ts';
import type { NewlyParked, Triage } from '../triage.ts';
import { ensure, expectLike } from './assertions.ts';
import type { Harness } from './harness.ts';

export const contracts = [
  'broker',
  'ledger',
  'triage',
  'rateLimits',
  'journal',
  'controls',
  'audit',
  'presence',
] as const;
/** The contracts that the suite can check. */
export type Contract = (typeof contracts)[number];
/** Optional methods that a check can need: `publishBehind` of the broker, and others of the harness. */
export type Means = 'reopen' | 'dieAfterWrites' | 'effect' | 'publishBehind';

/** One requirement for an engine. The name completes the sentence "the engine …". */
export interface Check {
  readonly name: string;
  readonly contracts: readonly Contract[];
  readonly needs: readonly FeatureName[];
  /** The optional methods that this check calls. */
  readonly means: readonly Means[];
  run(stage: Stage): Promise<void>;
}

/** Returns a function that creates checks. The checks run only on engines with all of `contracts`. */
export function checksOf(contracts: readonly Contract[]) {
  return (
    name: string,
    needs: readonly (FeatureName | Means)[],
    run: (stage: Stage) => Promise<void>,
  ): Check => ({
    name,
    contracts,
    needs: needs.filter((need): need is FeatureName => !isMeans(need)),
    means: needs.filter(isMeans),
    run,
  });
}

const means: readonly Means[] = ['reopen', 'dieAfterWrites', 'effect', 'publishBehind'];

function isMeans(need: string): need is Means {
  return means.some((each) => each === need);
}

/** The most `lease` calls of one `take`. An engine may return fewer events per call than requested. */
const leasesMax = 20;

/** Helper methods for the checks. */
export class Stage {
  readonly harness: Harness;
  readonly unitMs: number;
  engine: Engine;
  #names = 0;

  constructor(harness: Harness) {
    this.harness = harness;
    this.engine = harness.engine;
    this.unitMs = harness.unitMs ?? 1000;
  }

  get broker(): Broker {
    ensure(this.engine.broker, 'the engine has a broker');
    return this.engine.broker;
  }

  get ledger(): Ledger {
    ensure(this.engine.ledger, 'the engine has a ledger');
    return this.engine.ledger;
  }

  get triage(): Triage {
    ensure(this.engine.triage, 'the engine has a triage');
    return this.engine.triage;
  }

  get rateLimits(): RateLimits {
    ensure(this.engine.rateLimits, 'the engine has rate limits');
    return this.engine.rateLimits;
  }

  get journal(): Journal {
    ensure(this.engine.journal, 'the engine has a journal');
    return this.engine.journal;
  }

  get controls(): Controls {
    ensure(this.engine.controls, 'the engine has controls');
    return this.engine.controls;
  }

  get audit(): Audit {
    ensure(this.engine.audit, 'the engine has an audit log');
    return this.engine.audit;
  }

  get presence(): Presence {
    ensure(this.engine.presence, 'the engine has a presence');
    return this.engine.presence;
  }

  name(what: string): string {
    return `${this.harness.prefix ?? ''}${what}-${++this.#names}`;
  }

  async topic(settings: Partial<TopicSettings> = {}): Promise<string> {
    const topic = this.name('topic');
    await this.broker.declare(topic, settings);
    return topic;
  }

  /** Publishes one event for each payload. All events get the fields of `rest`. */
  async publish(topic: string, payloads: readonly string[], rest: Partial<NewEvent> = {}): Promise<string[]> {
    const published = await this.broker.publish(
      topic,
      payloads.map((payload) => ({ ...rest, payload })),
    );
    return published.map(({ id }) => id);
  }

  pass(units: number): Promise<void> {
    return this.harness.passTime(units * this.unitMs);
  }

  async lease(topic: string, request: Partial<LeaseRequest> = {}): Promise<readonly Delivery[]> {
    const { deliveries } = await this.broker.lease(topic, {
      owner: 'worker-1',
      limit: 100,
      leaseMs: 50 * this.unitMs,
      ...request,
    });
    return deliveries;
  }

  /** Calls `lease` until it has `count` events. Fails if 20 calls are not enough. */
  async take(topic: string, count: number, request: Partial<LeaseRequest> = {}): Promise<Delivery[]> {
    const taken: Delivery[] = [];
    for (let leases = 0; leases < leasesMax && taken.length < count; leases++) {
      const more = await this.lease(topic, { limit: count - taken.length, ...request });
      if (more.length === 0) await this.pass(0.05);
      taken.push(...more);
    }
    ensure(taken.length === count, `${count} events can be leased, got ${taken.length}`);
    return taken;
  }

  async takeOne(topic: string, request: Partial<LeaseRequest> = {}): Promise<Delivery> {
    const [delivery] = await this.take(topic, 1, request);
    return delivery!;
  }

  async expectNothing(topic: string, why: string): Promise<void> {
    const given = [...(await this.lease(topic)), ...(await this.lease(topic, { suspects: true }))];
    expectLike(payloads(given), [], why);
  }

  async settle(...batch: Settlement[]): Promise<void> {
    expectLike(
      await this.broker.settle(batch),
      batch.map(() => TOOK),
      'each settlement takes effect',
    );
  }

  async expectLost(...batch: Settlement[]): Promise<void> {
    expectLike(
      await this.broker.settle(batch),
      batch.map(() => LEASE_LOST),
      'a settlement under a lost lease says so',
    );
  }

  ack(delivery: Delivery): Promise<void> {
    return this.settle({ lease: delivery.lease, kind: 'ack' });
  }

  /** Continues the check with a second engine on the same storage, as another process would. */
  async reopen(): Promise<void> {
    this.engine = await this.harness.reopen!();
  }

  async parked(
    topic: string,
    id: string,
  ): Promise<(Envelope & { diagnosis: Diagnosis | undefined }) | undefined> {
    if (this.engine.features.parksInTriage === true) return this.triage.get(id);
    return (await this.lease(parkedTopic(topic))).find((delivery) => delivery.id === id);
  }

  retry({ lease, attempt }: Delivery, units: number): Settlement & { kind: 'retry' } {
    return { lease, kind: 'retry', delayMs: units * this.unitMs, error: note, story: storyOf(attempt) };
  }

  park({ lease, attempt }: Delivery): Settlement & { kind: 'park' } {
    return {
      lease,
      kind: 'park',
      stop: 'attempts_exhausted',
      error: note,
      story: storyOf(attempt),
      consumer,
    };
  }

  newlyParked(id: string, rest: Partial<NewlyParked> = {}, error: ErrorNote = note): NewlyParked {
    const topic = `${this.harness.prefix ?? ''}orders`;
    return {
      ...{
        id,
        topic,
        payload: `{"order":"${id}"}`,
        type: undefined,
        key: undefined,
        tenant: undefined,
        headers: {},
      },
      ...{ correlationId: id, idempotencyKey: id, originTopic: topic, firstSeenAt: 1, expiresAt: undefined },
      replay: undefined,
      diagnosis: {
        ...{ reason: error.type, message: error.message, stop: 'attempts_exhausted', finalAttempt: 6, error },
        story: storyOf(6),
        consumer,
      },
      ...rest,
    };
  }
}

/** The name of the consumer that parks events (sets them aside for an operator) in the checks. */
export const consumer = 'shipping';

export const act = { who: 'ada', why: 'the address is fixed' };

export const note: ErrorNote = errorNote(
  Object.assign(new TypeError('no street'), {
    stack: 'TypeError: no street\n    at ship (/app/src/ship.ts:10:3)',
  }),
);

export function storyOf(attempts: number): AttemptRecord[] {
  return Array.from({ length: attempts }, (_, index) => ({
    attempt: index + 1,
    at: 1000 + index,
    tookMs: 5,
    class: 'transient',
    errorType: note.type,
    errorMessage: note.message,
    verdict: index + 1 < attempts ? 'retry' : 'park',
    because: 'transient',
  }));
}

export function payloads(deliveries: readonly Delivery[]): unknown[] {
  return deliveries.map(({ payload }) => payload);
}

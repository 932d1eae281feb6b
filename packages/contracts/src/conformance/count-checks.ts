import { errorNote } from '../error-note.ts';
import type { ParkedFilter } from '../parked-filter.ts';
import type { ParkedStatus, ParkedSummary } from '../triage.ts';
import { expectLike } from './assertions.ts';
import { operate, replay } from './run-operation.ts';
import { act, type Check, checksOf, type Stage } from './stage.ts';

const check = checksOf(['triage']);

const statuses: readonly ParkedStatus[] = ['parked', 'replaying', 'resolved', 'discarded'];

/** Checks that stored counts equal the counts of a full scan. */
export const countChecks: readonly Check[] = [
  check('counts by topic, status and fingerprint what a scan would count', [], async (stage) => {
    for (const seed of [1, 2]) {
      const changes = new RandomChanges(stage, seed);
      for (let round = 0; round < 4; round++) {
        for (let step = 0; step < 10; step++) await changes.change();
        await expectCounts(stage, changes.topics);
      }
      await stage.engine.sweep(1000);
      await expectCounts(stage, changes.topics);
    }
  }),

  check('has the same counts after a restart', ['durable', 'reopen'], async (stage) => {
    const changes = new RandomChanges(stage, 3);
    for (let step = 0; step < 15; step++) await changes.change();
    await stage.reopen();
    await expectCounts(stage, changes.topics);
    await new RandomChanges(stage, 4, changes.topics).change();
    await expectCounts(stage, changes.topics);
  }),
];

/**
 * Makes random changes to the parked events (set aside for an operator) of two topics. The same seed gives
 * the same changes.
 */
class RandomChanges {
  readonly topics: readonly string[];
  readonly #stage: Stage;
  #seed: number;

  constructor(
    stage: Stage,
    seed: number,
    topics: readonly string[] = [stage.name('topic'), stage.name('topic')],
  ) {
    this.#stage = stage;
    this.#seed = seed;
    this.topics = topics;
  }

  async change(): Promise<void> {
    const stage = this.#stage;
    await this.#park();
    const ids = await this.#someOf('parked');
    const filter = { ids };
    switch (this.#below(7)) {
      case 0:
        for (const id of ids) await stage.triage.edit(id, { payload: 'mended' }, act);
        break;
      case 1:
        await operate(stage, { kind: 'discard', filter });
        break;
      case 2:
        await operate(stage, { kind: 'restore', filter: { ids: await this.#someOf('discarded') } });
        break;
      case 3:
        await operate(stage, { kind: 'keep', filter, keepMs: 100 * stage.unitMs });
        break;
      case 4:
        await replay(stage, filter, () => this.#below(2) === 0);
        break;
      case 5:
        await replay(stage, filter);
        await stage.triage.put(ids.map((id) => stage.newlyParked(id, { topic: this.topics[0]! })));
        break;
      case 6: {
        const discard = await operate(stage, { kind: 'discard', filter });
        if (this.#below(2) === 0) await operate(stage, { kind: 'undo', of: discard.id });
        await stage.pass(2);
        await stage.engine.sweep(1000);
      }
    }
  }

  async #park(): Promise<void> {
    const events = Array.from({ length: 1 + this.#below(4) }, () => {
      const errors = [new RangeError('below zero'), new TypeError('no street'), new Error('no')];
      const error = errors[this.#below(3)]!;
      // All errors are created on the same line, so give each type its own stack. Otherwise the fingerprints
      // would be equal.
      error.stack = `${error.name}: ${error.message}\n    at ${error.name} (/app/src/${error.name}.ts:1:1)`;
      const keepMs = (this.#below(3) === 0 ? 1 : 1000) * this.#stage.unitMs;
      const topic = this.topics[this.#below(2)]!;
      return this.#stage.newlyParked(this.#stage.name('event'), { topic, keepMs }, errorNote(error));
    });
    await this.#stage.triage.put(events);
  }

  async #someOf(status: ParkedStatus): Promise<string[]> {
    const events = await scan(this.#stage, { topic: this.topics, status });
    return events.map(({ id }) => id).filter(() => this.#below(3) === 0);
  }

  /** Returns a random whole number from 0 to `bound` - 1. */
  #below(bound: number): number {
    this.#seed = (Math.imul(this.#seed, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((this.#seed / 2 ** 32) * bound);
  }
}

async function expectCounts(stage: Stage, topics: readonly string[]): Promise<void> {
  const stored = await scan(stage, { topic: topics, status: statuses });
  const fingerprints = [...new Set(stored.map(({ fingerprint }) => fingerprint))];
  const filters: ParkedFilter[] = [
    { topic: topics, status: statuses },
    ...topics.flatMap((topic) => [
      { topic },
      { topic, status: ['parked', 'discarded'] as const },
      { topic, fingerprint: fingerprints.slice(0, 2) },
      ...statuses.map((status) => ({ topic: [topic], status })),
      ...fingerprints.map((fingerprint) => ({ topic, fingerprint, status: statuses })),
    ]),
  ];
  for (const filter of filters) {
    const what = JSON.stringify(filter);
    const events = await scan(stage, filter);
    expectLike(await stage.triage.count(filter), events.length, `the count of ${what}`);
    const { items } = await stage.triage.groups(filter, { limit: 100 });
    const byFingerprint = Object.groupBy(events, ({ fingerprint }) => fingerprint);
    expectLike(items.length, Object.keys(byFingerprint).length, `the number of groups of ${what}`);
    for (const { fingerprint, count, firstAt, lastAt, reason, topics } of items) {
      const group = byFingerprint[fingerprint] ?? [];
      const wanted = {
        count: group.length,
        firstAt: group.at(-1)?.parkedAt,
        lastAt: group[0]?.parkedAt,
        reason: group[0]?.reason,
        topics: new Set(group.map(({ topic }) => topic)),
      };
      const got = { count, firstAt, lastAt, reason, topics: new Set(topics) };
      expectLike(got, wanted, `the group ${fingerprint} of ${what}`);
    }
  }
}

/**
 * Lists all events that match a filter, page by page. `list` does not use the stored counts, so the result
 * shows the true number.
 */
async function scan(stage: Stage, filter: ParkedFilter): Promise<ParkedSummary[]> {
  const events: ParkedSummary[] = [];
  let cursor: string | undefined;
  do {
    const page = await stage.triage.list(filter, { limit: 500, ...(cursor !== undefined && { cursor }) });
    events.push(...page.items);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return events;
}

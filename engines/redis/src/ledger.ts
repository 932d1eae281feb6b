import { randomUUID } from 'node:crypto';
import {
  type Begun,
  clampMs,
  FeatureMissingError,
  type Hold,
  LEASE_LOST,
  type Ledger,
  type Payload,
  type ProcessedMark,
  TOOK,
} from '@holdfast/contracts';
import { markKey, tagged } from './broker/topic-keys.ts';
import { noTransaction } from './features.ts';
import { type Item, type RedisClient, runBatch, scriptOf } from './script-runner.ts';
import * as scripts from './scripts.ts';

/** Redis runs nothing else during a script, so one call removes at most 200 keys. */
const purgedTogether = 200;

const dayMs = 24 * 60 * 60 * 1000;

/** The prefix of the Redis keys, and how long it is remembered that an event was handled, in ms. */
export interface RedisLedgerSettings {
  readonly prefix: string;
  readonly keepMarksMs: number;
}

type BegunReply = [kind: Begun['kind'] | 'tombstone', detail?: number | string];

/**
 * Stores each idempotency key as a Redis hash. The client creates the tokens, so that a claim can be sent twice without
 * harm. All keys of a scope are in the same cluster slot.
 */
export function redisLedger(
  client: RedisClient,
  { prefix, keepMarksMs }: RedisLedgerSettings,
): Ledger<never> {
  const begin = scriptOf(client, 'begin', scripts.begin);
  const complete = scriptOf(client, 'complete', scripts.complete);
  const release = scriptOf(client, 'release', scripts.release);
  const extend = scriptOf(client, 'extend', scripts.extend);
  const mark = scriptOf(client, 'mark', scripts.mark);
  const purge = scriptOf(client, 'purge', scripts.purge);

  const scopeKey = (scope: string) => `${prefix}scope:{${tagged(scope)}}`;
  const keysOf = ({ scope, key }: { scope: string; key: string }): string[] => [
    `${prefix}key:{${tagged(scope)}}:${key}`,
    scopeKey(scope),
  ];
  const itemOf = (hold: Hold): Item => ({ keys: keysOf(hold), args: [hold.token] });
  const keyOfMark = ({ handler, eventId }: ProcessedMark) => markKey(prefix, handler, eventId);

  return {
    async begin(claims) {
      const tokens = claims.map(() => randomUUID());
      const items = claims.map((claim, index): Item => {
        const { fingerprint, leaseMs, keepMs = dayMs, liveMax = Infinity, whenLost } = claim;
        const cap = liveMax < Infinity ? liveMax : '';
        return {
          keys: keysOf(claim),
          args: [
            ...[fingerprint, tokens[index]!, clampMs(leaseMs), clampMs(keepMs), cap],
            whenLost === 'takeOver' ? 1 : 0,
          ],
        };
      });
      const replies = await runBatch<BegunReply>(client, begin, items);
      return replies.map((reply, index) => {
        const { scope, key } = claims[index]!;
        return toBegun(reply, { scope, key, token: tokens[index]! });
      });
    },

    async complete(completions) {
      if (completions.some(({ commit }) => commit)) {
        throw new FeatureMissingError('sharedTransaction', noTransaction);
      }
      const items = completions.map(({ hold, record, keepMs }): Item => {
        const args = [hold.token, clampMs(keepMs), record === undefined ? 2 : 1, encode(record)];
        return { keys: keysOf(hold), args };
      });
      const replies = await runBatch<number>(client, complete, items);
      return replies.map((took) => (took === 1 ? TOOK : LEASE_LOST));
    },

    async release(holds) {
      const replies = await runBatch<number>(client, release, holds.map(itemOf));
      return replies.map((released) => released === 1);
    },

    async extend(holds, leaseMs) {
      const replies = await runBatch<number>(client, extend, holds.map(itemOf), [clampMs(leaseMs)]);
      return replies.map((kept) => kept === 1);
    },

    async purge(scope) {
      let forgotten = 0;
      for (const set of [scopeKey(scope), `${scopeKey(scope)}:uncounted`]) {
        for (let from = 0, size = Infinity; from < size; ) {
          const [removed, kept, left] = (await purge([set], [from, purgedTogether])) as number[];
          forgotten += removed!;
          from += kept!;
          size = left!;
        }
      }
      return forgotten;
    },

    async mark(marks) {
      const items = marks.map((each): Item => ({ keys: [keyOfMark(each)], args: [] }));
      const replies = await runBatch<number>(client, mark, items, [clampMs(keepMarksMs)]);
      return replies.map((first) => first === 1);
    },

    async isMarked(marks) {
      const found = await Promise.all(marks.map((each) => client.exists(keyOfMark(each))));
      return found.map((count) => count === 1);
    },
  };
}

function toBegun([kind, detail]: BegunReply, hold: Hold): Begun {
  if (kind === 'acquired') return { kind, hold, attempt: detail as number };
  if (kind === 'running') return { kind, retryAfterMs: detail as number };
  if (kind === 'done') return { kind, record: decode(detail as string) };
  return kind === 'tombstone' ? { kind: 'done', record: undefined } : { kind };
}

function encode(record: Payload | undefined): string {
  if (record === undefined) return '';
  return typeof record === 'string' ? `t${record}` : `b${Buffer.from(record).toString('base64')}`;
}

function decode(text: string): Payload {
  return text.startsWith('t') ? text.slice(1) : Buffer.from(text.slice(1), 'base64');
}

import { assertOrderingChange, type Ordering, TopicError, type TopicSettings } from '@holdfast/contracts';
import type { Store } from './store.ts';

export interface Topic extends TopicSettings {
  readonly id: number;
  readonly name: string;
}

/**
 * An event's number is its topic's id times 2^40, plus a counter. With at most 2^12 topics, the number is
 * below 2^53, so it is exact in JavaScript.
 */
const countSpan = 2 ** 40;
const topicsMax = 2 ** 12;

/** Returns the range of event numbers of a topic: above `from`, and at most `to`. */
export function seqsOf({ id }: Pick<Topic, 'id'>): { readonly from: number; readonly to: number } {
  return { from: id * countSpan, to: (id + 1) * countSpan - 1 };
}

export const topicSql = 'SELECT id, name, ordering, keep_settled_ms FROM holdfast_topic WHERE name = ?';

/** Topics are not cached, because another process may change them at any time. */
export function topics(store: Store) {
  const byName = store.prepare(topicSql);
  const byId = store.prepare('SELECT name FROM holdfast_topic WHERE id = ?');
  const all = store.prepare('SELECT name FROM holdfast_topic ORDER BY id');
  const add = store.prepare('INSERT INTO holdfast_topic (name, ordering, keep_settled_ms) VALUES (?, ?, ?)');
  const count = store.prepare('SELECT count(*) AS count FROM holdfast_topic');
  const change = store.prepare('UPDATE holdfast_topic SET ordering = ?, keep_settled_ms = ? WHERE id = ?');
  const isUsed = store.prepare('SELECT 1 FROM holdfast_event WHERE seq BETWEEN ? AND ? LIMIT 1');

  function find(name: string): Topic | undefined {
    const row = byName.get(name);
    return row && toTopic(row);
  }

  return {
    find,

    open(name: string): Topic {
      const topic = find(name);
      if (!topic) throw new TopicError(name, 'was never declared');
      return topic;
    },

    names(): string[] {
      return all.all().map(({ name }) => String(name));
    },

    nameOf(id: number): string {
      return String(byId.get(id)?.name);
    },

    declare(name: string, settings: Partial<TopicSettings>): TopicSettings {
      const known = find(name);
      const ordering = settings.ordering ?? known?.ordering ?? 'none';
      const keepSettledMs = settings.keepSettledMs ?? known?.keepSettledMs ?? 0;
      if (!known) {
        if (Number(count.get()?.count) >= topicsMax)
          throw new TopicError(name, `is one too many: a file holds ${topicsMax}`);
        add.run(name, ordering, keepSettledMs);
      } else {
        const { from, to } = seqsOf(known);
        if (ordering !== known.ordering)
          assertOrderingChange(name, known.ordering, ordering, isUsed.get(from, to) !== undefined);
        change.run(ordering, keepSettledMs, known.id);
      }
      return { ordering, keepSettledMs };
    },
  };
}

export type Topics = ReturnType<typeof topics>;

export function toTopic(row: Record<string, unknown>): Topic {
  const { id, name, ordering, keep_settled_ms } = row;
  return {
    id: Number(id),
    name: String(name),
    ordering: ordering as Ordering,
    keepSettledMs: Number(keep_settled_ms),
  };
}

import { type Control, controlId, type Waiting, type WaitingState, waitingStates } from '@holdfast/contracts';
import { controlEffect } from '@holdfast/events';
import type { z } from 'zod';
import type { DeepReadonly } from '../api/routes.ts';
import type { consumerState, control, ruleRoutes, topicRoutes, topicState } from '../api/steering.ts';
import type { ConsoleEngine } from '../console-options.ts';
import type { Handlers } from '../server/handler.ts';
import { Problem } from '../server/problem.ts';

import type { ObservedControl, ObservedTopic, Observer } from '../watch/observer.ts';
import { filterText, parkedFilter } from './parked-filter.ts';
import { listAnswer, plain } from './parked-handlers.ts';

type ShownControl = DeepReadonly<z.infer<typeof control>>;
type ShownConsumer = DeepReadonly<z.infer<typeof consumerState>>;
type ShownTopic = DeepReadonly<z.infer<typeof topicState>>;

const defaultBounds = [0, 1e3, 1e4, 6e4, 6e5, 36e5, 864e5];

export interface TopicSettings {
  readonly engine: ConsoleEngine;
  readonly observer: Observer;
}

export function topicHandlers({
  engine,
  observer,
}: TopicSettings): Handlers<keyof typeof topicRoutes | keyof typeof ruleRoutes> {
  const { broker, controls, triage } = engine;

  async function assertTopic(topic: string): Promise<void> {
    if (!(await broker.topics()).includes(topic))
      throw new Problem('unknown', `There is no topic "${topic}".`);
  }

  async function shownControl(id: string): Promise<ShownControl | undefined> {
    const found = (await observer.fleet()).controls.find((each) => each.id === id);
    return found && controlOf(found);
  }

  return {
    async 'GET /topics'() {
      const { now, topics } = await observer.topics();
      return { now, asOf: now, items: topics.map(topicOf) };
    },

    async 'GET /topics/:topic'({ path: { topic } }) {
      await assertTopic(topic);
      const { now, topics } = await observer.topics();
      const found = topics.find((each) => each.topic === topic);
      if (!found) throw new Problem('unknown', `There is no topic "${topic}".`);
      return { now, topic: topicOf(found) };
    },

    async 'GET /topics/:topic/waiting'({ path: { topic }, query: { limit, cursor, state, key, tenant } }) {
      await assertTopic(topic);
      const question = plain({ state: state?.map(stateOf), key, tenant, order: 'due' as const });
      const page = await broker.waiting(
        topic,
        { limit, ...(cursor !== undefined && { cursor }) },
        question as never,
      );
      return listAnswer(await observer.now(), page, waitingOf);
    },

    async 'GET /topics/:topic/due'({ path: { topic }, query }) {
      await assertTopic(topic);
      const bounds = query.bounds === undefined ? defaultBounds : query.bounds.split(',').map(Number);
      if (bounds.some(Number.isNaN) || bounds.length > 50)
        throw new Problem(
          'bad-question',
          `Bounds: expected at most 50 numbers of ms, got "${query.bounds}".`,
        );
      return { now: await observer.now(), bounds, counts: [...(await broker.due(topic, bounds))] };
    },

    async 'POST /topics/:topic/waiting/retry'({ path: { topic }, body: { ids, why } }, { act }) {
      await assertTopic(topic);
      const changed = await broker.retryNow(topic, ids, act(why));
      return { changed: changed.filter(Boolean).length };
    },

    async 'POST /topics/:topic/waiting/unblock'({ path: { topic }, body: { ids, why } }, { act }) {
      await assertTopic(topic);
      const changed = await broker.unblock(topic, ids, act(why));
      return { changed: changed.filter(Boolean).length };
    },

    async 'GET /controls'() {
      const { now, controls: active } = await observer.fleet();
      return { now, asOf: now, items: active.map(controlOf) };
    },

    async 'PUT /controls'({ body: { control: given, forMs, why } }, { act }) {
      if (!given.topic.startsWith('assembly/')) await assertTopic(given.topic);
      await controls.impose(plain(given) as Control, act(why), forMs);
      await observer.refresh();
      return { control: (await shownControl(controlId(plain(given) as Control)))! };
    },

    async 'DELETE /controls/:id'({ path: { id }, body: { why } }, { act }) {
      const removed = await controls.lift(id, act(why));
      if (!removed) throw new Problem('unknown', `There is no control ${id}.`);
      await observer.refresh();
      return { removed };
    },

    async 'GET /consumers'() {
      const { now, consumers } = await observer.fleet();
      return { now, asOf: now, items: consumers.map(consumerOf) };
    },

    async 'GET /processes'() {
      const { now, processes } = await observer.fleet();
      const items = processes.map((process) => {
        const { id, service, host, pid, version, startedAt, heardAt, leftOut } = process;
        const counts = { policies: process.policies.length, consumers: process.consumers.length };
        return { id, service, host, pid, version, startedAt, heardAt, leftOut, ...counts };
      });
      return { now, asOf: now, items };
    },

    async 'GET /rules'() {
      const now = await observer.now();
      const items = (await triage.rules()).map(({ name, filter, action, afterMs = 0 }) => ({
        ...{ name, action, afterMs },
        filter: filterText(filter),
      }));
      return { now, asOf: now, items };
    },

    async 'PUT /rules/:name'(
      { path: { name }, body: { filter: words, action, afterMs, why, dry } },
      { act },
    ) {
      const filter = parkedFilter(words);
      const matches = await triage.count(filter);
      if (!dry) await triage.setRule({ name, filter, action, afterMs }, act(why));
      return { matches };
    },

    async 'DELETE /rules/:name'({ path: { name }, body: { why } }, { act }) {
      if (!(await triage.removeRule(name, act(why))))
        throw new Problem('unknown', `There is no rule "${name}".`);
      return { removed: true };
    },
  };
}

function stateOf(text: string): WaitingState {
  const state = waitingStates.find((each) => each === text);
  if (state) return state;
  throw new Problem(
    'bad-question',
    `State: expected one of ${waitingStates.join(', ')}, got "${text.slice(0, 50)}".`,
  );
}

function waitingOf(waiting: Waiting) {
  const { id, type, key, tenant, firstSeenAt, state, dueAt, attempts, snoozes, deaths, lastError, owner } =
    waiting;
  const error = lastError && `${lastError.type}: ${lastError.message}`;
  return plain({
    ...{ id, type, key, tenant, firstSeenAt, state, dueAt, attempts, snoozes, deaths, owner },
    lastError: error,
  });
}

function topicOf({ topic, counts, parked, controls, consumers }: ObservedTopic): ShownTopic {
  const { oldestReadyMs, nextDueInMs, asOf, ...states } = counts;
  return plain({
    ...{ topic, oldestReadyMs, nextDueInMs, parked, asOf },
    counts: states,
    controls: controls.map(controlOf),
    consumers: consumers.map(consumerOf),
    waitsFor: [...new Set(consumers.flatMap(({ waitsFor }) => waitsFor))],
  }) as ShownTopic;
}

export function controlOf(active: ObservedControl): ShownControl {
  const { id, control: its, act, since, until, heard } = active;
  const answers = Object.values(heard);
  const count = (answer: string) => answers.filter((each) => each === answer).length;
  return plain({
    ...{ id, kind: its.kind, says: controlEffect(its), who: act.who, why: act.why, since, until },
    about: 'topic' in its ? its.topic : its.policy,
    target: 'target' in its ? its.target : undefined,
    heard:
      'policy' in its
        ? { obeyed: count('obeyed'), notObeyed: count('not_obeyed'), notHeard: count('not_heard') }
        : undefined,
  }) as ShownControl;
}

function consumerOf(consumer: Observer['latest']['consumers'][number]): ShownConsumer {
  const { process, name, topic, status, concurrency, running, queued, waitsFor, paused, counters } = consumer;
  return {
    ...{ process, name, topic, status, concurrency, running, queued },
    waitsFor: [...waitsFor],
    paused: paused !== null && paused !== undefined,
    counters: counters as Record<string, unknown>,
  };
}

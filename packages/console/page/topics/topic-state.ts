import type { AnswerOf } from '../../src/api/routes.ts';
import { inWords, many } from '../format.ts';
import type { State } from '../parts/glyph.tsx';

export type TopicState = AnswerOf<'GET /topics'>['items'][number];

/** The state of a topic in one word. The first condition that is true decides. */
export function topicWord(topic: TopicState): { readonly state: State; readonly says: string } {
  const { controls, waitsFor, consumers, counts } = topic;
  const kinds = controls.map(({ kind, says }) => (kind === 'pause' ? says : kind));
  if (kinds.includes('paused')) return { state: 'waiting', says: 'paused' };
  if (waitsFor.length > 0) return { state: 'refused', says: 'braked' };
  if (consumers.length === 0)
    return counts.ready > 0
      ? { state: 'parked', says: 'nobody consumes' }
      : { state: 'over', says: 'no consumer' };
  if (kinds.includes('retries paused')) return { state: 'waiting', says: 'retries paused' };
  const quarantines = kinds.filter((kind) => kind === 'quarantine').length;
  if (quarantines > 0) return { state: 'waiting', says: `${many(quarantines, 'quarantine')}` };
  return { state: 'ok', says: 'running' };
}

/** True if events of the topic are being handled. Some tenants or keys may still be held back. */
export function doesFlow(topic: TopicState): boolean {
  return !['paused', 'braked', 'nobody consumes'].includes(topicWord(topic).says);
}

/** What stops the events of a topic, as part of a sentence; `undefined`: nothing. */
export function obstacle(topic: TopicState): string | undefined {
  const { says } = topicWord(topic);
  if (says === 'running' || says === 'no consumer') return undefined;
  const name = topic.topic;
  if (says === 'paused' || says === 'retries paused') return `${name} is ${says}`;
  if (says === 'braked') return `${name} waits for ${topic.waitsFor.join(' and ')}`;
  if (says === 'nobody consumes') return `nobody consumes ${name}`;
  const held = topic.controls.filter(({ kind }) => kind === 'quarantine').map((each) => each.says);
  return `${name}: ${held.length > 2 ? `${inWords(held.length)} quarantines` : held.join(', ')}`;
}

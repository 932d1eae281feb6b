import type { Broker } from '@holdfast/contracts';
import { nearest } from 'holdfast/fields';
import { type Given, UsageError } from './command.ts';
import { onlyOperand } from './given-values.ts';

/** Throws a `UsageError` if the topic does not exist. */
export async function topicOperand(given: Given, broker: Broker): Promise<string> {
  return knownTopic(onlyOperand(given, 'the name of a topic'), broker);
}

export async function knownTopic(topic: string, broker: Broker): Promise<string> {
  const topics = await broker.topics();
  if (topics.includes(topic)) return topic;
  throw unknownTopic(topic, topics);
}

const namedMax = 10;

export function unknownTopic(topic: string, topics: readonly string[]): UsageError {
  const meant = nearest(topic, topics);
  if (meant !== undefined)
    return new UsageError(`there is no topic "${topic}" here; did you mean "${meant}"?`);
  const named = topics.slice(0, namedMax).join(', ') || 'none';
  const more = topics.length > namedMax ? ` and ${topics.length - namedMax} more` : '';
  return new UsageError(`there is no topic "${topic}" here; there are: ${named}${more}.`);
}

import { parkedTopic } from '@holdfast/contracts';

/** Braces would begin or end the hash tag of the Redis key. */
export function tagged(name: string): string {
  return name.replace(/[{}%]/g, encodeURIComponent);
}

const parkedSuffix = parkedTopic('');

/**
 * Returns the Redis key of a topic. All other keys of the topic begin with it. A topic and its dead-letter topic have the same hash
 * tag, so an event is parked within one slot of a cluster.
 */
export function topicKey(prefix: string, topic: string): string {
  let origin = topic;
  while (origin.endsWith(parkedSuffix) && origin.length > parkedSuffix.length)
    origin = origin.slice(0, -parkedSuffix.length);
  return `${prefix}topic:{${tagged(origin)}}${topic.slice(origin.length)}`;
}

/** Returns the topic whose parked events are in this dead-letter topic. */
export function originOf(topic: string): string {
  return topic.endsWith(parkedSuffix) ? topic.slice(0, -parkedSuffix.length) : topic;
}

export function markKey(prefix: string, handler: string, eventId: string): string {
  return `${prefix}mark:{${tagged(eventId)}}:${handler}`;
}

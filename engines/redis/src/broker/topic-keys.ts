import { parkedTopic } from '@holdfast/contracts';

/** Encodes braces, because they would start or end the hash tag of the Redis key. */
export function tagged(name: string): string {
  return name.replace(/[{}%]/g, encodeURIComponent);
}

const parkedSuffix = parkedTopic('');

/**
 * Returns the Redis key of a topic. All other Redis keys of the topic start with it. A topic and its
 * dead-letter topic have the same hash tag. So both are in one cluster slot, and one script can move an event
 * between them.
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

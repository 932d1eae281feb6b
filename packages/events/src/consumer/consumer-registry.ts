import type { Consumer, ConsumerState } from './consumer.ts';

const running = new Set<Consumer>();

/** The state of every consumer of this process that was started and not stopped. */
export function consumers(): ConsumerState[] {
  return [...running].map((consumer) => consumer.state());
}

export function addConsumer(consumer: Consumer): void {
  running.add(consumer);
}

export function removeConsumer(consumer: Consumer): void {
  running.delete(consumer);
}

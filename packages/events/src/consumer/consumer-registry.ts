import type { Consumer, ConsumerState } from './consumer.ts';

const running = new Set<Consumer>();

/** Returns the state of every running consumer in this process: started, and not stopped. */
export function consumers(): ConsumerState[] {
  return [...running].map((consumer) => consumer.state());
}

export function addConsumer(consumer: Consumer): void {
  running.add(consumer);
}

export function removeConsumer(consumer: Consumer): void {
  running.delete(consumer);
}

import { Alarm, type Clock } from 'holdfast';

class Pause extends Alarm {
  readonly #resolve: () => void;

  constructor(resolve: () => void) {
    super();
    this.#resolve = resolve;
  }

  override ring(): void {
    this.#resolve();
  }
}

export function pause(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => clock.set(new Pause(resolve), clock.now() + ms));
}

/** What `promise` gives, or `undefined` once so much time has passed. */
export async function within<T>(clock: Clock, ms: number, promise: Promise<T>): Promise<T | undefined> {
  let alarm!: Pause;
  const late = new Promise<undefined>((resolve) => {
    alarm = new Pause(() => resolve(undefined));
    clock.set(alarm, clock.now() + ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clock.clear(alarm);
  }
}

import type { ServiceSettings } from '@holdfast/config';
import type { Call, Caller, Joined, Origin } from './caller.ts';
import { zipf } from './sampling.ts';
import type { World } from './world.ts';

type CacheSettings = NonNullable<ServiceSettings['cache']>;

/**
 * A cache in front of a service. Popular keys are drawn more often (Zipf's law) and are cached at the start.
 */
export class Cache {
  hits = 0;
  readonly #settings: CacheSettings;
  readonly #draw: () => number;
  readonly #filled: Uint8Array;
  /** For each key: calls that wait for the result of a pending call for the same key. */
  readonly #waiting = new Map<number, Joined[]>();

  constructor(world: World, name: string, settings: CacheSettings) {
    this.#settings = settings;
    this.#draw = zipf(settings.keys, settings.zipf, world.random('keys', name));
    this.#filled = new Uint8Array(settings.keys).fill(1, 0, Math.min(settings.warm, settings.keys));
  }

  flush(): void {
    this.#filled.fill(0);
  }

  /** On a miss the call is sent, or it waits for a pending call for the same key. */
  call(caller: Caller, origin: Origin, client: number, poison: boolean): void {
    const key = this.#draw();
    if (this.#filled[key]) {
      this.hits++;
      caller.join(origin, client).end(true);
      return;
    }
    const { coalesces } = this.#settings;
    const others = coalesces ? this.#waiting.get(key) : undefined;
    if (others) {
      others.push(caller.join(origin, client));
      return;
    }
    const waiting: Joined[] = [];
    if (coalesces) this.#waiting.set(key, waiting);
    const fill = (done: Call, ok: boolean) => {
      if (coalesces) this.#waiting.delete(key);
      if (ok) this.#filled[key] = 1;
      origin.ended(done, ok);
      for (const each of waiting) each.end(ok);
    };
    caller.call({ ended: fill, expiresAt: origin.expiresAt }, client, poison);
  }
}

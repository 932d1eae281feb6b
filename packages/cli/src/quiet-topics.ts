import { type Operation, type ReplayRequest, valuesOf } from '@holdfast/contracts';
import { consumersOf, spanText } from '@holdfast/events';
import { systemClock } from 'holdfast';
import { controlText } from './control-text.ts';
import type { OpenStore } from './store.ts';

/** If no event was handled for this time, the command looks for the reason. */
const quietMs = 2000;

/** Prints once why a replay makes no progress, for example because the topic is paused. */
export class QuietTopics {
  readonly #engine: OpenStore;
  readonly #print: (sentence: string) => void;
  #ended = -1;
  #since = 0;
  #isTold = false;
  looking: Promise<void> | undefined;

  constructor(engine: OpenStore, print: (sentence: string) => void) {
    this.#engine = engine;
    this.#print = print;
  }

  hear({ request, counts }: Operation): void {
    const ended = counts.succeeded + counts.failedAgain;
    const now = systemClock.now();
    if (ended !== this.#ended || ended === counts.released) [this.#ended, this.#since] = [ended, now];
    if (this.#isTold || this.looking || now - this.#since < quietMs) return;
    this.#since = now;
    this.looking = this.#look(request as ReplayRequest)
      .catch(() => {}) // ignore: the replay uses the same store and reports its errors
      .finally(() => {
        this.looking = undefined;
      });
  }

  async #look({ to, filter }: ReplayRequest): Promise<void> {
    const { broker } = this.#engine;
    const topics = to === undefined ? (filter.topic ?? (await broker.topics())) : to;
    for (const topic of valuesOf(topics)) {
      const { ready, leased, oldestReadyMs } = await broker.counts(topic);
      if (ready === 0 || leased > 0 || oldestReadyMs < quietMs || this.#isTold) continue;
      this.#isTold = true;
      this.#print(await whyQuiet(this.#engine, topic, oldestReadyMs));
    }
  }
}

async function whyQuiet(engine: OpenStore, topic: string, oldestReadyMs: number): Promise<string> {
  const { controls, now } = await engine.controls.active();
  // A replayed event starts with a first attempt. A pause of retries only (`only`) does not stop it.
  const pause = controls.find(
    ({ control }) => control.kind === 'pause' && control.topic === topic && !('only' in control),
  );
  if (pause) return `topic "${topic}" is ${controlText(pause, now, { columns: 0 })}; the replay waits.`;
  const found = consumersOf(await engine.presence.processes(), topic);
  const waiting = found.find(({ waitsFor }) => waitsFor.length > 0);
  if (waiting)
    return `consumer "${waiting.name}" of "${topic}" waits until ${waiting.waitsFor.join(', ')} can be called again; the replay waits.`;
  if (found.length > 0)
    return `the consumers of "${topic}" have taken nothing for ${spanText(oldestReadyMs)}; the replay waits.`;
  return `no consumer has taken an event of "${topic}" for ${spanText(oldestReadyMs)}; the replay goes on when one does.`;
}

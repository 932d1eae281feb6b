import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import vm from 'node:vm';
import FakeTimers from '@sinonjs/fake-timers';
import { seededRandom } from 'holdfast/testing';
import { Entity, Simulation } from 'simscript';

/** What every contestant simulates: clients that think, call, and retry with full jitter; one call in five fails. */
export interface PlainRetry {
  readonly clients: number;
  readonly ms: number;
}

const THINK_MS = 1000;
const SERVICE_MS = 100;
const FAILING = 0.2;
const ATTEMPTS = 4;
const BASE_MS = 200;

/** The numbers of a run: each peer draws them in the same way. */
function chance(seed: string) {
  const random = seededRandom('peer', seed);
  return {
    exponentialMs: (mean: number) => -mean * Math.log(1 - random()),
    isFailure: () => random() < FAILING,
    backoffMs: (attempt: number) => random() * BASE_MS * 2 ** (attempt - 1),
  };
}

interface SimJs {
  Sim: new () => { addEntity(type: unknown): void; simulate(until: number): void };
  Entity: new (...args: never[]) => { setTimer(ms: number): { done(next: () => void): void } };
}

/** It is a script for browsers, which finds its place in `window`. */
function loadSimJs(): SimJs {
  const window: { Sim?: SimJs } = {};
  const file = createRequire(import.meta.url).resolve('simjs');
  vm.runInThisContext(`(function (window) {${readFileSync(file, 'utf8')}\n})`)(window);
  return window.Sim!;
}

/** Gives the attempts that were made. */
export async function withSimJs({ clients, ms }: PlainRetry): Promise<number> {
  const { Sim, Entity: Base } = simJs();
  const { exponentialMs, isFailure, backoffMs } = chance('simjs');
  let attempts = 0;
  class Client extends Base {
    start(): void {
      this.setTimer(exponentialMs(THINK_MS)).done(() => this.attempt(1));
    }
    attempt(number: number): void {
      attempts++;
      this.setTimer(exponentialMs(SERVICE_MS)).done(() => {
        if (!isFailure() || number === ATTEMPTS) this.start();
        else this.setTimer(backoffMs(number)).done(() => this.attempt(number + 1));
      });
    }
  }
  const sim = new Sim();
  for (let client = 0; client < clients; client++) sim.addEntity(Client);
  sim.simulate(ms);
  return attempts;
}

let loaded: SimJs | undefined;
function simJs(): SimJs {
  loaded ??= loadSimJs();
  return loaded;
}

export async function withSimScript({ clients, ms }: PlainRetry): Promise<number> {
  // It rests between frames of a browser; here it gets the next one at once.
  Object.assign(globalThis, { requestAnimationFrame: setImmediate });
  const { exponentialMs, isFailure, backoffMs } = chance('simscript');
  let attempts = 0;
  class Client extends Entity {
    override async script(): Promise<void> {
      for (;;) {
        await this.delay(exponentialMs(THINK_MS));
        for (let number = 1; number <= ATTEMPTS; number++) {
          attempts++;
          await this.delay(exponentialMs(SERVICE_MS));
          if (!isFailure()) break;
          if (number < ATTEMPTS) await this.delay(backoffMs(number));
        }
      }
    }
  }
  const simulation = new Simulation();
  simulation.timeEnd = ms;
  simulation.yieldInterval = 0;
  simulation.generateEntities(Client, 0, clients);
  const isOver = new Promise<void>((resolve) => simulation.finished.addEventListener(() => resolve()));
  await simulation.start();
  await isOver;
  return attempts;
}

export async function withFakeTimers({ clients, ms }: PlainRetry): Promise<number> {
  const { exponentialMs, isFailure, backoffMs } = chance('fake timers');
  const clock = FakeTimers.createClock(0, Number.MAX_SAFE_INTEGER);
  let attempts = 0;
  const sleep = (forMs: number) =>
    new Promise<void>((resolve) => void clock.setTimeout(() => resolve(), forMs));
  async function client(): Promise<void> {
    for (;;) {
      await sleep(exponentialMs(THINK_MS));
      for (let number = 1; number <= ATTEMPTS; number++) {
        attempts++;
        await sleep(exponentialMs(SERVICE_MS));
        if (!isFailure()) break;
        if (number < ATTEMPTS) await sleep(backoffMs(number));
      }
    }
  }
  for (let each = 0; each < clients; each++) void client();
  await clock.tickAsync(ms);
  return attempts;
}

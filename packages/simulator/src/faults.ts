import type { FaultSettings } from '@holdfast/config';
import { Alarm } from 'holdfast';
import type { Cache } from './cache.ts';
import type { Instance, Service } from './service.ts';
import type { World } from './world.ts';

class Turn extends Alarm {
  readonly #go: () => void;

  constructor(go: () => void) {
    super();
    this.#go = go;
  }

  ring(): void {
    this.#go();
  }
}

/** Sets a fault's beginning and end on the timeline. */
export function plantFault(
  world: World,
  fault: FaultSettings,
  service: Service,
  caches: readonly Cache[],
  endUs: number,
): void {
  const { kind, instance: only, from, until, up, down } = fault;
  const all =
    only === undefined ? service.instances : service.instances.filter(({ index }) => index === only);
  const fromUs = from * 1000;
  const untilUs = Math.min(until * 1000, endUs);
  const at = (us: number, go: () => void) => world.timeline.setUs(new Turn(go), us);
  if (kind === 'flush') {
    at(fromUs, () => {
      for (const cache of caches) cache.flush();
    });
    return;
  }
  if (kind === 'flap') {
    for (let us = fromUs; us < untilUs; us += (up + down) * 1000) {
      at(us, () => set(all, (each) => (each.isRefusing = true)));
      at(Math.min(us + down * 1000, untilUs), () => set(all, (each) => (each.isRefusing = false)));
    }
    return;
  }
  at(fromUs, () => begin(fault, service, all, fromUs, untilUs));
  if (until < Infinity) at(untilUs, () => end(fault, service, all));
}

function begin(
  { kind, value, extra }: FaultSettings,
  service: Service,
  all: readonly Instance[],
  fromUs: number,
  untilUs: number,
): void {
  if (kind === 'loss') service.loss = value;
  set(all, (each) => {
    if (kind === 'stall') {
      each.stalledFromUs = fromUs;
      each.stalledUntilUs = untilUs;
    }
    if (kind === 'refuse') each.isRefusing = true;
    if (kind === 'hang') each.isHanging = true;
    if (kind === 'errorRate') each.errorRate = value;
    if (kind === 'extraLatency') each.extraUs = extra * 1000;
    if (kind === 'capacityFactor') each.speed *= value;
  });
}

function end({ kind, value }: FaultSettings, service: Service, all: readonly Instance[]): void {
  if (kind === 'loss') service.loss = 0;
  set(all, (each) => {
    if (kind === 'refuse') each.isRefusing = false;
    if (kind === 'hang') each.isHanging = false;
    if (kind === 'errorRate') each.errorRate = 0;
    if (kind === 'extraLatency') each.extraUs = 0;
    if (kind === 'capacityFactor') each.speed /= value;
    each.wake();
  });
}

function set(all: readonly Instance[], change: (each: Instance) => void): void {
  for (const each of all) change(each);
}

/** Sets the changes of a service's capacity on the timeline. */
export function plantCapacity(world: World, service: Service): void {
  for (const { at, factor } of service.settings.capacity) {
    const change = () =>
      set(service.instances, (each) => {
        each.speed = factor;
      });
    world.timeline.setUs(new Turn(change), at * 1000);
  }
}

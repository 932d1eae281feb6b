import type { FaultSettings } from '@holdfast/config';
import { Timer } from 'holdfast';
import type { Cache } from './cache.ts';
import { broken, connectionReset, type Failure, overloaded, tooMany } from './failures.ts';
import type { InjectedError, Instance, Service } from './service.ts';
import type { World } from './world.ts';

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
  const at = (us: number, go: () => void) => world.timeline.setUs(new Timer(world.timeline, go), us);
  if (kind === 'flush') {
    at(fromUs, () => {
      for (const cache of caches) cache.flush();
    });
    return;
  }
  if (kind === 'flap') {
    for (let us = fromUs; us < untilUs; us += (up + down) * 1000) {
      at(us, () => begin(fault, service));
      at(Math.min(us + down * 1000, untilUs), () => end(fault, service));
    }
    return;
  }
  at(fromUs, () => {
    if (kind === 'stall') set(all, (each) => each.stall(untilUs));
    else begin(fault, service);
  });
  if (until < Infinity) {
    at(untilUs, () => {
      end(fault, service);
      set(all, (each) => each.wake());
    });
  }
}

function begin(fault: FaultSettings, service: Service): void {
  service.faults.add(fault);
  renew(service);
}

function end(fault: FaultSettings, service: Service): void {
  service.faults.delete(fault);
  renew(service);
}

/** Computes each setting of a service again from all its current faults, because faults may overlap. */
function renew(service: Service): void {
  const faults = [...service.faults];
  const worst = (kind: FaultSettings['kind'], its: readonly FaultSettings[]) =>
    its.reduce((most, each) => (each.kind === kind ? Math.max(most, each.value) : most), 0);
  service.loss = worst('loss', faults);
  set(service.instances, (each) => {
    const its = faults.filter(({ instance }) => instance === undefined || instance === each.index);
    each.isRefusing = its.some(({ kind }) => kind === 'refuse' || kind === 'flap');
    each.isHanging = its.some(({ kind }) => kind === 'hang');
    each.errors = errorsOf(its);
    each.extraUs =
      1000 * its.reduce((sum, { kind, extra }) => sum + (kind === 'extraLatency' ? extra : 0), 0);
    each.speed = its.reduce(
      (speed, { kind, value }) => (kind === 'capacityFactor' ? speed * value : speed),
      each.capacity,
    );
  });
}

/** If several faults inject the same error, only the largest share counts. */
function errorsOf(faults: readonly FaultSettings[]): InjectedError[] {
  const worst = new Map<string, FaultSettings>();
  for (const fault of faults.filter(({ kind }) => kind === 'errorRate')) {
    if (fault.value >= (worst.get(fault.gives)?.value ?? 0)) worst.set(fault.gives, fault);
  }
  return [...worst.values()].map(({ value, gives, retryAfter }) => ({
    share: value,
    make: () => makers[gives](retryAfter),
  }));
}

const makers: Record<FaultSettings['gives'], (retryAfterMs: number | undefined) => Failure> = {
  500: broken,
  503: overloaded,
  429: tooMany,
  reset: connectionReset,
};

function set(all: readonly Instance[], change: (each: Instance) => void): void {
  for (const each of all) change(each);
}

export function plantCapacity(world: World, service: Service): void {
  for (const { at, factor } of service.settings.capacity) {
    const change = () => {
      set(service.instances, (each) => {
        each.capacity = factor;
      });
      renew(service);
    };
    world.timeline.setUs(new Timer(world.timeline, change), at * 1000);
  }
}

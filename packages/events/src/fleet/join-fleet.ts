import { hostname } from 'node:os';
import { type ActiveControl, assertName, type Engine, timeOrderedId } from '@holdfast/contracts';
import {
  type Clock,
  type Duration,
  durationMs,
  OptionsError,
  policies,
  systemClock,
  systemRandom,
  Timer,
} from 'holdfast';
import { assertKnownFields } from 'holdfast/fields';
import { consumers } from '../consumer/consumer-registry.ts';
import { assertAwaited } from '../publish/assert-awaited.ts';
import { isMaintained } from '../triage/maintained-stores.ts';
import { fitReport } from './fit-report.ts';
import { PolicyControlState } from './policy-control-state.ts';

/** The options of `joinFleet`. `engine` and `service` are required. */
export interface FleetOptions {
  /** The store that all processes of the fleet share. Required. */
  readonly engine: Pick<Engine, 'presence' | 'controls'>;
  /** The name of the service, such as `checkout`. Required. */
  readonly service: string;
  /** The version of the service. Default: `unknown`. */
  readonly version?: string | undefined;
  /** The time between two reports, at most 5 s. The store forgets a report after 10 s. Default: `2s`. */
  readonly every?: Duration | undefined;
  /**
   * Called with the error when the store cannot be read or written. The next report tries again. Default:
   * none.
   */
  readonly onError?: ((error: unknown) => void) | undefined;
  /** The clock for delays and time limits. Default: the system's. */
  readonly clock?: Clock | undefined;
}

const known: Readonly<Record<keyof FleetOptions, true>> = {
  engine: true,
  service: true,
  version: true,
  every: true,
  onError: true,
  clock: true,
};

/** The membership of this process in its fleet, until `stop`. */
export interface FleetMember {
  /** The id of this process in the list of processes that the store has. */
  readonly id: string;
  /** Reads and applies the controls and sends a report now, without waiting for the next interval. */
  refresh(): Promise<void>;
  /** Removes this process from the list of processes. Operators' controls no longer apply to its policies. */
  stop(): Promise<void>;
}

/**
 * The longest allowed `every`. The store forgets reports after 10 s, so a running process is not forgotten
 * even if a report is 5 s late.
 */
const everyMaxMs = 5000;

/**
 * Makes this process visible to operators, and lets operators control it through the store. Every 2 s, the
 * process reports the states of its policies and consumers, and applies the operators' controls to its
 * policies. If the store is unavailable, the last controls stay active until their time is over.
 */
export function joinFleet(options: FleetOptions): FleetMember {
  assertKnownFields(known, options);
  const { engine, service, version = 'unknown', clock = systemClock, onError } = options;
  assertAwaited(engine);
  const { presence, controls } = engine;
  if (!presence) throw new OptionsError('engine.presence', presence, 'an engine with a list of processes');
  if (!controls) throw new OptionsError('engine.controls', controls, 'an engine with stored controls');
  if (typeof service !== 'string' || service === '') throw new OptionsError('service', service, 'a text');
  assertName('service', service);
  const everyMs = durationMs(options.every ?? '2s', 'every');
  if (!(everyMs > 0 && everyMs <= everyMaxMs))
    throw new OptionsError('every', options.every, `a time above 0, at most ${everyMaxMs / 1000} s`);

  const id = timeOrderedId(clock, systemRandom)();
  const startedAt = clock.epochMs();
  const state = new PolicyControlState();
  const timer = new Timer(clock, () => void refresh());
  let active: readonly Ending[] = [];
  let controlsVersion = 0;
  let going: Promise<void> = Promise.resolve();
  let isStopped = false;

  function refresh(): Promise<void> {
    going = going.then(round);
    return going;
  }

  async function round(): Promise<void> {
    if (isStopped) return;
    try {
      await read();
    } catch (error) {
      onError?.(error);
    }
    try {
      await report(obeyed());
    } catch (error) {
      onError?.(error);
    }
    if (!isStopped) timer.setIn(everyMs);
  }

  async function read(): Promise<void> {
    const answer = await controls!.active();
    const now = clock.now();
    active = answer.controls.map((each) => ({
      ...each,
      endsAt: now + (each.until ?? Infinity) - answer.now,
    }));
    controlsVersion = answer.version;
  }

  /**
   * Applies the controls whose time is not over. Returns the ids of the controls that this process cannot
   * obey.
   */
  function obeyed(): string[] {
    const now = clock.now();
    return state.obey(active.filter(({ endsAt }) => endsAt > now));
  }

  function report(notObeyed: readonly string[]): Promise<void> {
    const clockOffsetMs = clock.epochMs() - clock.now();
    return presence!.report(
      fitReport({
        ...{ id, service, version, startedAt, clockOffsetMs, controlsVersion, notObeyed },
        host: hostname(),
        pid: process.pid,
        policies: policies(),
        consumers: consumers(),
        maintains: isMaintained(presence!),
      }),
    );
  }

  void refresh();
  return {
    id,
    refresh,
    async stop() {
      if (isStopped) return;
      isStopped = true;
      timer.clear();
      await going;
      state.obey([]);
      await presence.leave(id);
    },
  };
}

interface Ending extends ActiveControl {
  /** When the control ends, on the scale of `Clock.now` of this process. */
  readonly endsAt: number;
}

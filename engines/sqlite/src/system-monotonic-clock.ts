import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import type { MonotonicClock } from './store-clock.ts';

let known: MonotonicClock | undefined;

/** The machine's monotonic clock. `Clock.now` starts anew with each process; this one starts with the machine. */
export function systemMonotonicClock(): MonotonicClock {
  known ??= create();
  return known;
}

function create(): MonotonicClock {
  const bootId = readBootId();
  const shiftMs = readShiftMs();
  return {
    bootId,
    now() {
      const [seconds, nanoseconds] = process.hrtime();
      return seconds * 1e3 + nanoseconds / 1e6 - shiftMs;
    },
  };
}

/**
 * Windows has no boot id: there a restart is noticed if the clock shows less than before. If it shows more, the time in which the
 * machine was off is not counted.
 */
function readBootId(): string {
  const boot = tryRead('/proc/sys/kernel/random/boot_id') ?? trySysctl('kern.bootsessionuuid');
  return boot ?? `host ${hostname()}`;
}

/** A process in a time namespace sees a shifted clock. Linux says by how much: "monotonic 100000 0". */
function readShiftMs(): number {
  const [, seconds = '0', nanoseconds = '0'] =
    /^monotonic\s+(-?\d+)\s+(\d+)/m.exec(tryRead('/proc/self/timens_offsets') ?? '') ?? [];
  return Number(seconds) * 1e3 + Number(nanoseconds) / 1e6;
}

function tryRead(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return undefined; // not a system that has it
  }
}

/** Only macOS has its boot id there. */
function trySysctl(name: string): string | undefined {
  if (process.platform !== 'darwin') return undefined;
  try {
    return execFileSync('/usr/sbin/sysctl', ['-n', name], { encoding: 'utf8' }).trim() || undefined;
  } catch {
    return undefined; // an older release, or a sandbox
  }
}

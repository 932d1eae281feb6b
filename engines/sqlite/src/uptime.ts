import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import type { MonotonicClock } from './store-clock.ts';

let known: MonotonicClock | undefined;

/** Returns a clock that counts from the start of the machine. All processes of the machine share it. */
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
 * Returns an id that changes when the machine restarts. Windows has none, so a restart may stay unnoticed
 * there.
 */
function readBootId(): string {
  const boot = tryRead('/proc/sys/kernel/random/boot_id') ?? trySysctl('kern.bootsessionuuid');
  return boot ?? `host ${hostname()}`;
}

/**
 * Returns by how many ms Linux shifts the monotonic clock of this process in a time namespace. The file has,
 * for example, "monotonic 100000 0" (seconds and nanoseconds).
 */
function readShiftMs(): number {
  const [, seconds = '0', nanoseconds = '0'] =
    /^monotonic\s+(-?\d+)\s+(\d+)/m.exec(tryRead('/proc/self/timens_offsets') ?? '') ?? [];
  return Number(seconds) * 1e3 + Number(nanoseconds) / 1e6;
}

function tryRead(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return undefined; // the system does not have this file
  }
}

/** Reads a system setting of macOS. Returns `undefined` on other systems. */
function trySysctl(name: string): string | undefined {
  if (process.platform !== 'darwin') return undefined;
  try {
    return execFileSync('/usr/sbin/sysctl', ['-n', name], { encoding: 'utf8' }).trim() || undefined;
  } catch {
    return undefined; // an older macOS has no such setting, and a sandbox may forbid to read it
  }
}

import { execFileSync } from 'node:child_process';
import { renameSync, writeFileSync } from 'node:fs';
import { fakeTimeLibrary, fakeTimePackage } from '../../scripts/services/fake-time.ts';

/** A wall clock that one process goes by, and that can be set while it runs. Its monotonic clock is the machine's. */
export class FakeWall {
  readonly #file: string;

  /** `file` is made, and tells the process how far its clock is off. */
  constructor(file: string) {
    this.#file = file;
    this.set(0);
  }

  /** What the process has to be started with. */
  get env(): Record<string, string> {
    return {
      LD_PRELOAD: fakeTimeLibrary() ?? '',
      FAKETIME_TIMESTAMP_FILE: this.#file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      // The same for releases before 0.9.9.
      DONT_FAKE_MONOTONIC: '1',
    };
  }

  set(hours: number): void {
    // In one step: half a file would be another time.
    writeFileSync(`${this.#file}.new`, `${hours < 0 ? '' : '+'}${hours}h\n`);
    renameSync(`${this.#file}.new`, this.#file);
  }
}

/** Why no process here can have one. */
export function whyNoFakeWall(folder: string): string | undefined {
  if (process.platform !== 'linux') return 'libfaketime is used on Linux only';
  if (fakeTimeLibrary() === undefined) return `libfaketime not found (Debian: ${fakeTimePackage})`;
  const wall = new FakeWall(`${folder}/probe`);
  wall.set(25);
  const clocks = 'JSON.stringify([Date.now(), Number(process.hrtime.bigint()) / 1e6])';
  const before = [Date.now(), Number(process.hrtime.bigint()) / 1e6];
  const env = { ...process.env, ...wall.env };
  const told = JSON.parse(execFileSync(process.execPath, ['-p', clocks], { env, encoding: 'utf8' }));
  const [wallMs, monotonicMs] = before.map((time, index) => told[index] - time);
  if (!(wallMs! > 24 * 3_600_000)) return 'libfaketime does not set the wall clock of Node';
  if (!(Math.abs(monotonicMs!) < 3_600_000)) return 'libfaketime sets the monotonic clock of Node, too';
  return undefined;
}

import type { Journal } from '@holdfast/contracts';
import { type Clock, type Duration, OptionsError, Timer } from 'holdfast';
import type { Program } from './assembly.ts';
import { Cron, type Occurrence } from './cron.ts';

/**
 * Starts an assembly at regular times. The id of the assembly contains the due time, so several processes
 * start it only once.
 */
export interface Schedule {
  /** Part of the ids of its assemblies: `schedule/<name>/<local time>`. Required. */
  readonly name: string;
  /** Five fields: minute, hour, day of the month, month, weekday. Example: `0 3 * * mon-fri`. Required. */
  readonly cron: string;
  /** The time zone of `cron`, such as `Europe/Berlin`. Default: UTC. */
  readonly timeZone?: string | undefined;
  /** The program of the assemblies. Required. */
  // biome-ignore lint/suspicious/noExplicitAny: a program of any input
  readonly program: Program<any, any, any>;
  /**
   * The input of the assemblies, or a function that gets the due time and returns the input. Default: none.
   */
  readonly input?: unknown;
  /**
   * How long the customer waits: a duration, or the name of a patience class of the program. Default: that of
   * the program.
   */
  readonly patience?: Duration | string | undefined;
  /** The name of the queue whose limits apply to the assemblies. Default: none. */
  readonly queue?: string | undefined;
  /**
   * True: if due times were missed while no process ran, an assembly is started at once for the last of them.
   * Default: `false`.
   */
  readonly catchUp?: boolean | undefined;
}

export interface SchedulesSettings {
  readonly schedules: readonly Schedule[];
  readonly clock: Clock;
  readonly journal: Journal;
  start(program: Program, input: unknown, id: string, options: object): Promise<void>;
  onFailure(what: string, error: unknown): void;
}

const againMs = 1000;

/**
 * Runs the schedules by the store's clock. Each process runs all schedules; the ids prevent duplicate
 * assemblies.
 */
export class Schedules {
  readonly #settings: SchedulesSettings;
  readonly #entries: readonly { readonly schedule: Schedule; readonly cron: Cron; readonly timer: Timer }[];
  #next = new Map<Schedule, Occurrence>();
  #offsetMs = 0;

  constructor(settings: SchedulesSettings) {
    this.#settings = settings;
    const names = new Set<string>();
    this.#entries = settings.schedules.map((schedule) => {
      if (typeof schedule.name !== 'string' || schedule.name === '' || names.has(schedule.name))
        throw new OptionsError('schedules.name', schedule.name, 'a name of its own');
      names.add(schedule.name);
      const timer = new Timer(settings.clock, () => void this.#due(schedule));
      return { schedule, cron: new Cron(schedule.cron, schedule.timeZone), timer };
    });
  }

  async start(): Promise<void> {
    if (this.#entries.length === 0) return;
    const { journal, clock } = this.#settings;
    this.#offsetMs = (await journal.now()) - clock.now();
    for (const { schedule, cron, timer } of this.#entries) {
      const now = this.#now();
      const missed = schedule.catchUp ? cron.latest(now) : undefined;
      const next = missed ?? cron.after(now);
      if (!next) continue;
      this.#next.set(schedule, next);
      timer.setIn(Math.max(0, next.at - now));
    }
  }

  stop(): void {
    for (const { timer } of this.#entries) timer.clear();
    this.#next.clear();
  }

  async #due(schedule: Schedule): Promise<void> {
    const occurrence = this.#next.get(schedule);
    const entry = this.#entries.find((each) => each.schedule === schedule);
    if (!occurrence || !entry) return;
    const { name, program, input, patience, queue } = schedule;
    try {
      const given = typeof input === 'function' ? input(new Date(occurrence.at)) : input;
      const options = { ...(patience !== undefined && { patience }), ...(queue !== undefined && { queue }) };
      await this.#settings.start(program, given, `schedule/${name}/${occurrence.local}`, options);
    } catch (error) {
      // Mismatch: another process has started this due time with another input. That is no failure.
      if ((error as { code?: unknown }).code !== 'HOLDFAST_ASSEMBLY_MISMATCH') {
        this.#settings.onFailure(`schedule ${name}`, error);
        if (this.#next.has(schedule)) entry.timer.setIn(againMs);
        return;
      }
    }
    if (!this.#next.has(schedule)) return;
    const now = this.#now();
    const next = entry.cron.after(Math.max(now, occurrence.at));
    if (!next) return;
    this.#next.set(schedule, next);
    entry.timer.setIn(Math.max(0, next.at - now));
  }

  #now(): number {
    return this.#settings.clock.now() + this.#offsetMs;
  }
}

import { spawn } from 'node:child_process';
import path from 'node:path';
import { createInterface } from 'node:readline';
import type { Place, Plan, ServerCommand, SystemUser } from './recipe.ts';

export interface GuardSpec {
  readonly command: ServerCommand;
  readonly environment: Readonly<Record<string, string>>;
  readonly companion: ServerCommand | undefined;
  readonly stopSignal: NodeJS.Signals;
  readonly user: SystemUser | undefined;
  /** Removed in the end. */
  readonly folder: string;
}

export type GuardCommand = 'start' | 'stop' | 'kill';
export type GuardReport = { readonly pid: number } | { readonly ended: string };

/** A server that cannot outlive us. */
export interface GuardedChild {
  /** The process id of the server. */
  readonly pid: number;
  /** `stop` is orderly, `kill` is a crash. Resolves when it has ended. */
  end(how: 'stop' | 'kill'): Promise<void>;
  /** After it has ended. */
  start(): Promise<void>;
  /** Stops the server and removes its folder. */
  remove(): Promise<void>;
}

const startPatienceMs = 60_000;
const lookMs = 25;

/** Starts the server and waits until it answers. Rejects with the last lines of its log if it does not. */
export async function startGuarded(plan: Plan, { folder, user }: Place): Promise<GuardedChild> {
  const { command, environment = {}, companion, stopSignal } = plan;
  const spec: GuardSpec = { command, environment, companion, stopSignal, user, folder };
  const file = path.join(import.meta.dirname, 'child-guard-process.ts');
  const guard = spawn(process.execPath, [file, JSON.stringify(spec)], {
    stdio: ['pipe', 'pipe', 'inherit'],
    // A group of its own: Ctrl-C is for us, and we decide what it means for the server.
    detached: true,
  });
  const gone = new Promise<void>((resolve) => guard.on('close', () => resolve()));
  // A server must not keep a process alive that has nothing else to do.
  guard.unref();
  for (const stream of [guard.stdin, guard.stdout]) (stream as { unref?(): void }).unref?.();
  guard.stdin.on('error', () => {}); // it has left, and `close` says so

  let pid: number | undefined;
  let ended: string | undefined;
  let changed = Promise.withResolvers<void>();
  createInterface(guard.stdout).on('line', (line) => {
    const report: GuardReport = JSON.parse(line);
    if ('pid' in report) [pid, ended] = [report.pid, undefined];
    else ended = report.ended;
    changed.resolve();
    changed = Promise.withResolvers();
  });

  const order = (what: GuardCommand) => guard.stdin.write(`${what}\n`);

  async function untilReady(): Promise<void> {
    const giveUpAt = performance.now() + startPatienceMs;
    while (pid === undefined || !(await plan.isReady())) {
      if (ended !== undefined) throw new Error(`${path.basename(command[0])} did not start: ${ended}`);
      if (performance.now() > giveUpAt) throw new Error(`${path.basename(command[0])} did not answer.`);
      await new Promise((resolve) => setTimeout(resolve, lookMs));
    }
  }

  async function remove(): Promise<void> {
    guard.stdin.end();
    guard.ref();
    await gone;
  }

  try {
    await untilReady();
  } catch (error) {
    await remove();
    throw error;
  }
  return {
    get pid() {
      return pid!;
    },

    async end(how) {
      order(how);
      guard.ref();
      while (ended === undefined) await changed.promise;
      guard.unref();
    },

    async start() {
      for (let triesLeft = 20; ; triesLeft--) {
        [pid, ended] = [undefined, undefined];
        order('start');
        try {
          return await untilReady();
        } catch (error) {
          // What a killed server leaves behind may need a moment to notice it.
          if (triesLeft === 0) throw error;
          await new Promise((resolve) => setTimeout(resolve, 4 * lookMs));
        }
      }
    },

    remove,
  };
}

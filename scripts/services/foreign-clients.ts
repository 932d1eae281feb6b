import { spawnSync } from 'node:child_process';
import { cached } from './cache.ts';
import { runProgram } from './programs.ts';
import type { Missing } from './start-service.ts';

/** Clients that others wrote, by which tests see whether they understand us. */
const modules = ['boto3==1.44.3', 'kafka-python==3.0.12', 'pika==1.4.4'];

/** Programs of that kind, and the Debian packages that have them. */
export const foreignPrograms: Readonly<Record<string, string>> = { kcat: 'kcat' };

export interface Found {
  readonly missing?: undefined;
  /** The environment in which the program is to be run. */
  readonly env: NodeJS.ProcessEnv;
}

/** `python3` with the modules above. They are fetched once for this machine, and change nothing of its own Python. */
export async function pythonClients(): Promise<Found | Missing> {
  const { status } = spawnSync('python3', ['-m', 'pip', '--version'], { stdio: 'ignore' });
  if (status !== 0) return demanded({ missing: 'pip of python3 not found' });
  try {
    const folder = await cached(`python-${modules.join('-').replaceAll('=', '')}`, async (draft) => {
      const options = ['-qq', '--disable-pip-version-check', '--root-user-action=ignore', '--target', draft];
      await runProgram(['python3', '-m', 'pip', 'install', ...options, ...modules], { folder: draft });
    });
    return { env: { ...process.env, PYTHONPATH: folder } };
  } catch (error) {
    return demanded({ missing: `Python's clients cannot be installed: ${(error as Error).message}` });
  }
}

/** A program that somebody else wrote. */
export function foreignProgram(program: string, ...args: string[]): Found | Missing {
  const { status } = spawnSync(program, args, { stdio: 'ignore' });
  return status === 0 ? { env: process.env } : demanded({ missing: `there is no ${program}` });
}

/** On a build machine (`CI=true`) a missing one is a failure; elsewhere it is a reason to skip, by name. */
function demanded(answer: Missing): Missing {
  if (process.env.CI === 'true') throw new Error(answer.missing);
  return answer;
}

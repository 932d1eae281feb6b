import { assembly, type Program, type Step } from '@holdfast/assembly';
import type { MemoryTransaction } from '@holdfast/contracts/memory';
import { type Clock, permanent, type Random, sleep, transient } from 'holdfast';

/** A part of a random program. */
export type Part =
  | {
      readonly kind: 'run' | 'transaction' | 'sleep' | 'wait' | 'fail';
      readonly name: string;
      readonly ms: number;
    }
  | { readonly kind: 'loop'; readonly name: string; readonly ms: number; readonly times: number }
  | {
      readonly kind: 'all' | 'each' | 'race';
      readonly name: string;
      readonly branches: readonly (readonly Part[])[];
    }
  | { readonly kind: 'child'; readonly name: string; readonly ms: number }
  | { readonly kind: 'choice'; readonly name: string; readonly parts: readonly Part[] };

export interface World {
  readonly clock: Clock;
  /** Faults of steps: the next attempt of any step fails if it draws a small number. */
  readonly faults: Random;
  readonly faultRatio: number;
  /** Called when a step begins. It never returns in a process that has died. */
  begins(path: string): Promise<void>;
  undone(path: string): void;
  /** Counts the effect of a transaction. */
  effect(tx: MemoryTransaction, path: string): void;
}

const kinds = [
  'run',
  'run',
  'run',
  'transaction',
  'sleep',
  'wait',
  'fail',
  'loop',
  'all',
  'each',
  'race',
  'child',
  'choice',
] as const;

/** Makes a program of up to `size` parts. */
export function randomParts(random: Random, size: number, depth = 0, names = { last: 0 }): Part[] {
  return Array.from({ length: 1 + Math.floor(random() * size) }, () => {
    const kind = kinds[Math.floor(random() * (depth < 2 ? kinds.length : 8))]!;
    const name = `s${++names.last}`;
    const ms = Math.floor(random() * 400);
    const inner = () => randomParts(random, 2, depth + 1, names);
    switch (kind) {
      case 'loop':
        return { kind, name, ms, times: 1 + Math.floor(random() * 3) };
      case 'all':
      case 'each':
      case 'race':
        return { kind, name, branches: [inner(), inner(), ...(random() < 0.3 ? [inner()] : [])] };
      case 'choice':
        return { kind, name, parts: inner() };
      default:
        return { kind, name, ms };
    }
  });
}

/** The names of signals that the program waits for. */
export function signalsOf(parts: readonly Part[]): string[] {
  return parts.flatMap((part) => {
    if (part.kind === 'wait') return [part.name];
    if ('branches' in part) return part.branches.flatMap(signalsOf);
    return 'parts' in part ? signalsOf(part.parts) : [];
  });
}

export function hasRace(parts: readonly Part[]): boolean {
  return parts.some(
    (part) =>
      part.kind === 'race' ||
      ('branches' in part && part.branches.some(hasRace)) ||
      ('parts' in part && hasRace(part.parts)),
  );
}

export const childProgram = (world: World) =>
  assembly('child', async (step: Step<MemoryTransaction>, { path, ms }: { path: string; ms: number }) => {
    await act(world, step, `${path}-one`, ms);
    return act(world, step, `${path}-two`, ms);
  });

/** The program. What it returns is all that it saw, in the order in which it saw it. */
export function programOf(
  parts: readonly Part[],
  world: World,
): Program<undefined, string[], MemoryTransaction> {
  const child = childProgram(world);
  return assembly('random', async (step: Step<MemoryTransaction>) => {
    const seen: string[] = [];
    await runParts(step, parts, seen, world, child);
    return seen;
  });
}

async function runParts(
  step: Step<MemoryTransaction>,
  parts: readonly Part[],
  seen: string[],
  world: World,
  child: ReturnType<typeof childProgram>,
): Promise<void> {
  for (const part of parts) {
    const { name } = part;
    switch (part.kind) {
      case 'run':
        seen.push(await act(world, step, name, part.ms));
        break;
      case 'loop':
        for (let time = 0; time < part.times; time++)
          seen.push(`${time} ${await act(world, step, name, part.ms)}`);
        break;
      case 'transaction':
        seen.push(
          await step.transaction(
            name,
            (tx, { key }) => {
              if (world.faults() < world.faultRatio) throw transient(new Error('conflict'));
              world.effect(tx, key);
              return `tx ${name}`;
            },
            { policy },
          ),
        );
        break;
      case 'sleep':
        await step.sleep(name, part.ms * 20);
        seen.push(`slept ${name}`);
        break;
      case 'wait':
        seen.push(`signal ${await step.waitFor(name)}`);
        break;
      case 'fail':
        try {
          await step.run(name, () => {
            throw permanent(new Error('never'));
          });
        } catch (error) {
          seen.push((error as Error).message);
        }
        break;
      case 'all': {
        const branches = part.branches.map(
          (inner, index): [string, (branch: Step<MemoryTransaction>) => Promise<number>] => [
            `b${index}`,
            async (branch) => {
              await runParts(branch, inner, seen, world, child);
              return index;
            },
          ],
        );
        seen.push(JSON.stringify(await step.all(name, Object.fromEntries(branches))));
        break;
      }
      case 'each':
        await step.each(
          name,
          part.branches.entries(),
          ([index]) => index,
          (branch, [, inner]) => runParts(branch, inner, seen, world, child),
          { concurrency: 2 },
        );
        break;
      case 'race': {
        const branches = part.branches.map(
          (inner, index): [string, (branch: Step<MemoryTransaction>) => Promise<number>] => [
            `b${index}`,
            async (branch) => {
              await runParts(branch, inner, seen, world, child);
              return index;
            },
          ],
        );
        seen.push(`winner ${await step.race(name, Object.fromEntries(branches))}`);
        break;
      }
      case 'child':
        seen.push(`child ${await step.child(name, child, { path: name, ms: part.ms })}`);
        break;
      case 'choice':
        if (step.random() < 0.5) await runParts(step, part.parts, seen, world, child);
        seen.push(`uuid ${step.uuid()}`);
    }
  }
}

const policy = { attempts: 1000, backoff: { base: '20ms', factor: 3, cap: '20s', jitter: 'full' } } as const;

async function act(world: World, step: Step<MemoryTransaction>, name: string, ms: number): Promise<string> {
  return step.run(
    name,
    async ({ key }) => {
      await world.begins(key);
      await sleep(world.clock, ms);
      if (world.faults() < world.faultRatio) throw transient(new Error('a fault'));
      return `did ${name}`;
    },
    { policy, undo: (_, { stepKey }) => world.undone(stepKey) },
  );
}

import { OptionsError, type PolicySpec, policy, type Random } from 'holdfast';
import { lint } from 'holdfast/lint';

interface Gene {
  readonly name: string;
  /** The values to try for this setting. Neighbouring values have similar effects. */
  readonly choices: readonly PolicySpec[];
}

const each = <T>(values: readonly T[], spec: (value: T) => PolicySpec): PolicySpec[] => values.map(spec);

/** The settings that the search varies. All other settings keep their values from the starting policy. */
const genes: readonly Gene[] = [
  {
    name: 'patience',
    choices: each(['500ms', '1s', '2s', '5s', '10s'] as const, (patience) => ({ patience })),
  },
  { name: 'attempts', choices: each([1, 2, 3, 4, 5, 6, 8], (attempts) => ({ attempts })) },
  {
    name: 'base',
    choices: each(['25ms', '50ms', '100ms', '200ms', '400ms', '800ms', '1600ms'] as const, (base) => ({
      backoff: { base },
    })),
  },
  { name: 'factor', choices: each([1.5, 2, 3], (factor) => ({ backoff: { factor } })) },
  { name: 'cap', choices: each(['2s', '5s', '10s', '30s'] as const, (cap) => ({ backoff: { cap } })) },
  {
    name: 'jitter',
    // "No jitter" is not a choice: the scenarios of the search have too few clients to show its harm.
    choices: each(['equal', 'full', 'decorrelated'] as const, (jitter) => ({ backoff: { jitter } })),
  },
  {
    name: 'budget',
    choices: [
      ...each([0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5], (ratio) => ({ budget: { ratio } })),
      { budget: false },
    ],
  },
  {
    name: 'breaker',
    choices: [
      ...each([0.3, 0.5, 0.7, 0.9], (failureRatio) => ({ breaker: { failureRatio } })),
      { breaker: false },
    ],
  },
  {
    name: 'openFor',
    choices: each(
      [
        ['250ms', '5s'],
        ['500ms', '10s'],
        ['1s', '30s'],
        ['2s', '30s'],
        ['5s', '60s'],
      ] as const,
      (openFor) => ({
        breaker: { openFor: [...openFor] },
      }),
    ) as PolicySpec[],
  },
  {
    name: 'attemptTimeout',
    choices: each(['250ms', '500ms', '1s', 'auto', 'split', '2s', '4s'] as const, (attemptTimeout) => ({
      attemptTimeout,
    })),
  },
  { name: 'throttle', choices: each([false, true], (throttle) => ({ throttle })) },
  { name: 'hedge', choices: each([false, true], (hedge) => ({ hedge })) },
];

/** For each gene (setting), the index of its choice; −1 keeps the value of the starting policy. */
export type Genome = readonly number[];

export const unchanged: Genome = genes.map(() => -1);

export function randomGenome(random: Random): Genome {
  return genes.map(({ choices }) => Math.floor(random() * choices.length));
}

/** Variants of the starting policy, one for each attempt timeout. This setting has the largest effect. */
export const timeoutsOf: readonly Genome[] = timeouts();

function timeouts(): Genome[] {
  const gene = genes.findIndex(({ name }) => name === 'attemptTimeout');
  return genes[gene]!.choices.map((_, choice) =>
    unchanged.map((each, index) => (index === gene ? choice : each)),
  );
}

/** Changes one to three genes (settings), mostly to a neighbouring choice. */
export function mutated(genome: Genome, random: Random): Genome {
  const next = [...genome];
  const changes = 1 + Math.floor(random() * 3);
  for (let change = 0; change < changes; change++) {
    const gene = Math.floor(random() * genes.length);
    const { length } = genes[gene]!.choices;
    const now = next[gene]!;
    const isLeap = now < 0 || random() < 0.3;
    const step = random() < 0.5 ? -1 : 1;
    next[gene] = isLeap ? Math.floor(random() * length) : Math.min(length - 1, Math.max(0, now + step));
  }
  return next;
}

export function crossed(one: Genome, other: Genome, random: Random): Genome {
  return one.map((choice, gene) => (random() < 0.5 ? choice : other[gene]!));
}

/**
 * Calls `draw` until its genome (list of settings) is a valid policy. With `isSound`, it must also break no
 * rule of `dangerous`.
 */
export function possible(base: PolicySpec, isSound: boolean, draw: () => Genome): Genome {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const genome = draw();
    if (isPossible(policyOf(genome, base), isSound)) return genome;
  }
  return unchanged;
}

const TRIES_MAX = 100;

/** Lint rules that prevent harm to other callers. A tuned policy must not break them. */
const dangerous = new Set([
  'no-budget',
  'large-budget',
  'no-breaker',
  'hasty-breaker',
  'no-jitter',
  'no-delay',
  'hedge-without-budget',
]);

export function isPossible({ name: _, ...spec }: PolicySpec, isSound: boolean): boolean {
  try {
    return !lint(policy(spec)).some(({ rule }) => isSound && dangerous.has(rule));
  } catch (error) {
    if (error instanceof OptionsError) return false;
    throw error;
  }
}

export function policyOf(genome: Genome, base: PolicySpec): PolicySpec {
  const spec: Record<string, unknown> = structuredClone(base) as Record<string, unknown>;
  for (const [gene, choice] of genome.entries()) {
    if (choice < 0) continue;
    for (const [key, value] of Object.entries(genes[gene]!.choices[choice]!)) {
      const before = spec[key];
      // A part that the starting policy switches off, such as a breaker, stays off.
      if (isGroup(value) && before === false) continue;
      spec[key] = isGroup(value) && isGroup(before) ? { ...before, ...value } : value;
    }
  }
  return spec as PolicySpec;
}

function isGroup(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

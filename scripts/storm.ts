import { readdir, readFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { parseScenario } from '@holdfast/config';
import { comparedIn, type Trial } from '@holdfast/simulator';
import { endOnSignal, root } from './command.ts';

/** One policy in one scenario: what a worker is given. */
export interface StormJob {
  readonly file: string;
  readonly policy: string;
  readonly seeds: number;
}

interface Storm {
  readonly id: string;
  readonly variant: string | null;
  readonly title: string;
  /** The default policy meets every bound, and naive policies do the harm they must. */
  readonly pass: boolean;
  readonly isBound: boolean;
  readonly trials: readonly Trial[];
}

const folder = path.join(root, 'packages/simulator/storms');
/** The policy that is held to the bounds. */
const ours = 'holdfast';

endOnSignal();
const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
    policy: { type: 'string', default: '' },
    seeds: { type: 'string', default: '5' },
  },
});

const files = (await readdir(folder)).filter((file) => /^s\d.*\.yaml$/.test(file)).sort();
const scenarios = await Promise.all(
  files.map(async (file) => ({
    file,
    scenario: parseScenario(await readFile(path.join(folder, file), 'utf8'), file),
  })),
);
const chosen = scenarios.filter(({ scenario }) => scenario.id.startsWith(values.only));
const jobs = chosen.flatMap(({ file, scenario }) =>
  comparedIn(scenario)
    .filter((policy) => policy.startsWith(values.policy))
    .map((policy): StormJob => ({ file: path.join(folder, file), policy, seeds: Number(values.seeds) })),
);
const trials = await runAll(jobs);
const storms = chosen.map(({ file, scenario }): Storm => {
  const its = trials.filter((_, index) => path.basename(jobs[index]!.file) === file);
  const own = its.find(({ policy }) => policy === ours);
  const isModelRight = its.every(({ damage }) => damage.every(({ met }) => met));
  return {
    id: scenario.id,
    variant: scenario.variant ?? null,
    title: scenario.title,
    pass: (own?.pass ?? true) && isModelRight,
    isBound: scenario.expect.length > 0 && own !== undefined,
    trials: its,
  };
});

const ids = [...new Set(storms.map(({ id }) => id))];
const summary = ids.map((id) => ({
  id,
  pass: storms.filter((storm) => storm.id === id).every(({ pass }) => pass),
}));
if (!values.json) console.log(storms.map(table).join('\n'));
const passed = summary.filter(({ pass }) => pass).length;
if (!values.json) console.log(`\n${passed} of ${summary.length} scenarios pass with the default policy`);
else {
  const scenariosOut = summary.map((each) => ({
    ...each,
    variants: storms.filter(({ id }) => id === each.id),
  }));
  console.log(JSON.stringify({ scenarios: scenariosOut }));
}
process.exitCode = passed === summary.length ? 0 : 1;

function table({ id, variant, title, trials: its }: Storm): string {
  const lines = its.map(({ policy, pass, findings, damage }) => {
    const figures = findings.map((each) => `${each.what} ${show(each.figure)}${each.met ? '' : ' ✗'}`);
    const harm = damage.map(
      (each) => `${each.what} ${show(each.figure)} ${each.met ? '(as it must)' : '(MODEL?)'}`,
    );
    const verdict = findings.length === 0 ? ' ' : pass ? '✓' : '✗';
    return `  ${verdict} ${policy.padEnd(18)} ${[...figures, ...harm].join('; ')}`;
  });
  return [`\n${id}${variant ? ` (${variant})` : ''}: ${title}`, ...lines].join('\n');
}

function show(figure: number | null): string {
  if (figure === null) return 'never';
  return Math.abs(figure) >= 100 ? figure.toFixed(0) : Number(figure.toPrecision(4)).toString();
}

/** Spreads the jobs over all processors; the answers come in the order of the jobs. */
function runAll(all: readonly StormJob[]): Promise<Trial[]> {
  const answers: Trial[] = [];
  let next = 0;
  let done = 0;
  return new Promise((resolve, reject) => {
    if (all.length === 0) resolve(answers);
    for (let count = 0; count < Math.min(os.availableParallelism(), all.length); count++) {
      const worker = new Worker(path.join(import.meta.dirname, 'storm-worker.ts'), {
        execArgv: ['--conditions=holdfast-source', '--no-warnings'],
      });
      let index = -1;
      const give = () => {
        index = next++;
        if (index < all.length) worker.postMessage(all[index]);
        else void worker.terminate();
      };
      worker.on('error', reject);
      worker.on('message', (trial: Trial) => {
        answers[index] = trial;
        if (process.stderr.isTTY) process.stderr.write(`\r${++done} of ${all.length} `);
        else done++;
        if (done === all.length) resolve(answers);
        give();
      });
      give();
    }
  });
}

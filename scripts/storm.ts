import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { parseArgs } from 'node:util';
import {
  boundsOf,
  comparedIn,
  RunPool,
  type RunRequest,
  readStorm,
  seedsOf,
  stormNames,
  stormPolicies,
  trialOf,
  type WeatherVerdict,
  weatherCases,
  weatherRuns,
  weatherVerdict,
} from '@holdfast/simulator';
import { endOnSignal, root } from './command.ts';
import { type Storm, stormSections, suiteOf, weatherTable, withSections } from './storm-doc.ts';

const docs = path.join(root, 'docs/storms.md');

endOnSignal();
const values = given();
const seeds = Number(values.seeds);
if (!(Number.isInteger(seeds) && seeds > 0))
  refuse(`--seeds wants a whole number above zero, got "${values.seeds}".`);
else if (values['write-docs'] && (values.only !== '' || values.policy !== '' || seeds < 3)) {
  refuse(
    '--write-docs wants all storms, all policies and three seeds or more: a part of the suite is not its table.',
  );
} else await run();

function given() {
  try {
    return parseArgs({
      options: {
        json: { type: 'boolean', default: false },
        only: { type: 'string', default: '' },
        policy: { type: 'string', default: '' },
        seeds: { type: 'string', default: '5' },
        'write-docs': { type: 'boolean', default: false },
      },
    }).values;
  } catch (error) {
    console.error((error as Error).message);
    process.exit(2);
  }
}

async function run(): Promise<void> {
  const policies = stormPolicies();
  const scenarios = stormNames()
    .map(readStorm)
    .filter(({ id }) => isAsked(id));
  const pairs = scenarios.flatMap((scenario) =>
    comparedIn(scenario)
      .filter((policy) => policy.startsWith(values.policy))
      .map((policy) => ({ scenario, policy })),
  );
  // Weather has policies of its own, so that it is run unless a policy is asked for.
  const cases = values.policy === '' ? weatherCases().filter(({ id }) => isAsked(id)) : [];
  if (pairs.length + cases.length === 0) {
    refuse(`There is no storm "${values.only}" with a policy "${values.policy}": nothing was run.`);
    return;
  }
  const requests = pairs.flatMap(({ scenario, policy }) =>
    seedsOf(scenario, seeds).map(
      (seed): RunRequest => ({ scenario, policy, policies, seed, bounds: boundsOf(scenario, policy) }),
    ),
  );
  await using pool = new RunPool();
  const answers = await pool.run(requests, (done) => {
    if (process.stderr.isTTY) process.stderr.write(`\r${done} of ${requests.length} `);
  });
  const trials = pairs.map(({ scenario, policy }, index) => ({
    scenario,
    trial: trialOf(scenario, policy, answers.slice(index * seeds, (index + 1) * seeds)),
  }));
  const storms = scenarios.map((scenario): Storm => {
    const { id, variant, title } = scenario;
    const its = trials.filter((each) => each.scenario === scenario).map(({ trial }) => trial);
    return { id, variant: variant ?? null, title, trials: its };
  });
  const weather: WeatherVerdict[] = [];
  for (const each of cases) {
    weather.push(weatherVerdict(each, await pool.run(weatherRuns(each, seedsOf(each.scenario, seeds)))));
    if (process.stderr.isTTY)
      process.stderr.write(`\r${weather.length} of ${cases.length} kinds of weather `);
  }
  const suite = suiteOf(storms);
  const judged = suite.filter(({ pass }) => pass !== null);
  const passed = judged.filter(({ pass }) => pass).length;
  const wrong = suite.filter(({ isModelRight }) => !isModelRight);
  const fair = weather.filter(({ pass }) => pass).length;
  if (values.json) console.log(JSON.stringify({ scenarios: suite, weather }));
  else {
    console.log(storms.map(table).join('\n'));
    console.log(
      judged.length > 0
        ? `\n${passed} of ${judged.length} scenarios pass with the default policy`
        : '\nThe default policy was not run, so nothing is said about it',
    );
    if (weather.length > 0) {
      console.log(`\n${weather.map(weatherLine).join('\n')}`);
      console.log(`\n${fair} of ${weather.length} kinds of weather pass with the default policy`);
    }
    if (wrong.length > 0) console.log(`The model is wrong in ${wrong.map(({ id }) => id).join(', ')}`);
  }
  if (values['write-docs']) {
    const sections = new Map([...stormSections(storms, seeds), ['weather', weatherTable(weather)]]);
    await writeFile(docs, withSections(await readFile(docs, 'utf8'), sections));
  }
  const isGood = passed === judged.length && wrong.length === 0 && fair === weather.length;
  process.exitCode = isGood ? 0 : 1;
}

function isAsked(id: string): boolean {
  return id.toLowerCase().startsWith(values.only.toLowerCase());
}

function weatherLine({ id, pass, findings }: WeatherVerdict): string {
  const figures = findings.map(
    ({ what, figures: its, met }) => `${what} ${Object.values(its).map(show).join(' | ')}${met ? '' : ' ✗'}`,
  );
  return `  ${pass ? '✓' : '✗'} ${id}: ${figures.join('; ')}`;
}

function table({ id, variant, title, trials }: Storm): string {
  const lines = trials.map(({ policy, pass, findings, damage }) => {
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

function refuse(message: string): void {
  console.error(message);
  process.exitCode = 2;
}

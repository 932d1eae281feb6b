import { parseArgs } from 'node:util';
import { report } from './report.ts';
import type { Suite } from './suite.ts';

const suites: Record<string, () => Promise<{ suite: Suite }>> = {
  assembly: () => import('./suites/assembly.ts'),
  core: () => import('./suites/core.ts'),
  engines: () => import('./suites/engines.ts'),
  events: () => import('./suites/events.ts'),
  gateway: () => import('./suites/gateway.ts'),
  http: () => import('./suites/http.ts'),
  server: () => import('./suites/server.ts'),
  simulator: () => import('./suites/simulator.ts'),
  waiters: () => import('./suites/waiters.ts'),
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: 'boolean', default: false },
    rounds: { type: 'string' },
    case: { type: 'string', default: '' },
    together: { type: 'boolean', default: false },
  },
});
const [name = ''] = positionals;
const load = Object.hasOwn(suites, name) ? suites[name] : undefined;
const rounds = values.rounds === undefined ? undefined : Number(values.rounds);

if (load === undefined) {
  const problem = name === '' ? 'A benchmark needs a suite' : `There is no suite "${name}"`;
  refuse(`${problem}. There are: ${Object.keys(suites).join(', ')}.`);
} else if (rounds !== undefined && !(Number.isInteger(rounds) && rounds > 0)) {
  refuse(`--rounds wants a whole number above zero, got "${values.rounds}".`);
} else {
  const { suite } = await load();
  const cases = await suite.run({ rounds, caseContains: values.case, together: values.together });
  if (cases.length === 0) {
    refuse(`No case of "${name}" contains "${values.case}".`);
  } else {
    console.log(`${name} on Node ${process.version}\n\n${report(cases)}\n`);
    for (const note of suite.notes) console.log(note);
    if (values.json) console.log(JSON.stringify({ suite: name, node: process.version, cases }));
  }
}

function refuse(message: string): void {
  console.error(message);
  process.exitCode = 2;
}

import { parseArgs } from 'node:util';
import { endOnSignal } from './command.ts';

export interface DrillOptions {
  /** How often the trial is repeated; each drill has its own default. */
  readonly times: number | undefined;
  /** For drills that run on several: `sqlite`, `postgres`, `redis`. */
  readonly engine?: string | undefined;
  /** For drills that add up the counts of their runs: forgets those of earlier runs. */
  readonly fresh?: boolean | undefined;
}

/** The figures of a drill, by groups where there are several; one with several trials has a case for each. */
export type DrillResult =
  | Readonly<Record<string, number | Readonly<Record<string, number>>>>
  | { readonly cases: readonly ({ readonly id: string; readonly pass: boolean } & object)[] };

export interface DrillModule {
  /** Throws where a promise was broken, or has a case that does not pass; otherwise tells what it counted. */
  drill(options: DrillOptions): Promise<DrillResult>;
}

/** The long trials. Each runs the code of a shortened one in the tests, with larger counts. */
const drills: Record<string, () => Promise<DrillModule>> = {
  'assembly-kill': () => import('../drills/assembly-kill.ts'),
  'console-axe': () => import('../drills/console-axe.ts'),
  'console-live': () => import('../drills/console-live.ts'),
  'console-million': () => import('../drills/console-million.ts'),
  'events-clock': () => import('../drills/events-clock.ts'),
  'events-full': () => import('../drills/events-full.ts'),
  'events-kill': () => import('../drills/events-kill.ts'),
  'events-restart': () => import('../drills/events-restart.ts'),
  gateway: () => import('../drills/gateway.ts'),
  'gateway-fleet': () => import('../drills/gateway-fleet.ts'),
  'gateway-soak': () => import('../drills/gateway-soak.ts'),
  'http-soak': () => import('../drills/http-soak.ts'),
  'http-outage': () => import('../drills/http-outage.ts'),
  'pattern-plots': () => import('../drills/pattern-plots.ts'),
  published: () => import('../drills/published.ts'),
  'published-plots': () => import('../drills/published-plots.ts'),
  'idempotency-kill': () => import('../drills/idempotency-kill.ts'),
  'operations-kill': () => import('../drills/operations-kill.ts'),
  overload: () => import('../drills/overload.ts'),
  'overload-plot': () => import('../drills/overload-plot.ts'),
  'parked-million': () => import('../drills/parked-million.ts'),
  'redis-outage': () => import('../drills/redis-outage.ts'),
};

endOnSignal();
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    times: { type: 'string' },
    engine: { type: 'string' },
    fresh: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
});
const [name = ''] = positionals;
const load = drills[name];
const times = values.times === undefined ? undefined : Number(values.times);

if (load === undefined) {
  refuse(`${name === '' ? 'A drill needs a name' : `There is no drill "${name}"`}. There are: ${names()}.`);
} else if (times !== undefined && !(Number.isInteger(times) && times > 0)) {
  refuse(`--times wants a whole number above zero, got "${values.times}".`);
} else {
  const result = await (await load()).drill({ times, engine: values.engine, fresh: values.fresh });
  if ('cases' in result && Array.isArray(result.cases)) {
    for (const { id, pass, ...figures } of values.json ? [] : result.cases)
      console.log(`${pass ? 'pass' : 'FAIL'} ${id}: ${JSON.stringify(figures)}`);
    if (!result.cases.every(({ pass }) => pass)) process.exitCode = 1;
  } else for (const line of linesOf(result)) console.log(line);
  if (values.json) console.log(JSON.stringify({ drill: name, ...result }));
}

function linesOf(figures: object, group = ''): string[] {
  return Object.entries(figures).flatMap(([what, figure]) =>
    typeof figure === 'object' ? linesOf(figure, `${what}, `) : [`${group}${what}: ${figure}`],
  );
}

function names(): string {
  return Object.keys(drills).join(', ') || 'none yet';
}

function refuse(message: string): void {
  console.error(message);
  process.exitCode = 2;
}

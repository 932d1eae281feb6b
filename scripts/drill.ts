import { parseArgs } from 'node:util';
import { endOnSignal } from './command.ts';

export interface DrillOptions {
  /** How often the trial is repeated; each drill has its own default. */
  readonly times: number | undefined;
  /** For drills that run on several: `sqlite`, `postgres`, `redis`. */
  readonly engine?: string | undefined;
}

export interface DrillModule {
  /** Throws where a promise was broken; otherwise tells what it counted. */
  drill(options: DrillOptions): Promise<Record<string, number>>;
}

/** The long trials. Each runs the code of a shortened one in the tests, with larger counts. */
const drills: Record<string, () => Promise<DrillModule>> = {
  'events-clock': () => import('../drills/events-clock.ts'),
  'events-full': () => import('../drills/events-full.ts'),
  'events-kill': () => import('../drills/events-kill.ts'),
  'events-restart': () => import('../drills/events-restart.ts'),
  'http-soak': () => import('../drills/http-soak.ts'),
  'http-outage': () => import('../drills/http-outage.ts'),
  published: () => import('../drills/published.ts'),
  'published-plots': () => import('../drills/published-plots.ts'),
  'idempotency-kill': () => import('../drills/idempotency-kill.ts'),
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
  const counts = await (await load()).drill({ times, engine: values.engine });
  for (const [what, count] of Object.entries(counts)) console.log(`${what}: ${count}`);
  if (values.json) console.log(JSON.stringify({ drill: name, ...counts }));
}

function names(): string {
  return Object.keys(drills).join(', ') || 'none yet';
}

function refuse(message: string): void {
  console.error(message);
  process.exitCode = 2;
}

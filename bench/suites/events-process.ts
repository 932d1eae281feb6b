import { serve } from '../worker.ts';
import { engines } from './events/engines.ts';
import { measure } from './events/event-case.ts';
import type { EventsAnswer, EventsJob } from './events.ts';

serve<EventsJob, EventsAnswer>(async ({ engine, names, rounds }) => {
  const { cases, missing } = await engines[engine]!();
  const results = [];
  for (const each of cases.filter(({ case: name }) => names.includes(name))) {
    results.push(await measure(each, rounds));
  }
  return { cases: cases.map(({ case: name }) => name), missing, results };
});

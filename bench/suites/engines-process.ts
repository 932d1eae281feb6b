import { serve } from '../worker.ts';
import { brokerCases } from './engines/broker-benches.ts';
import { measure } from './events/event-case.ts';
import type { EventsAnswer, EventsJob } from './events.ts';

serve<EventsJob, EventsAnswer>(async ({ engine, names, rounds }) => {
  const { cases, missing } = await brokerCases(engine);
  const results = [];
  for (const each of cases.filter(({ case: name }) => names.includes(name))) {
    results.push(await measure(each, rounds));
  }
  return { cases: cases.map(({ case: name }) => name), missing, results };
});

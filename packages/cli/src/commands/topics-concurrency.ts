import type { Control } from '@holdfast/contracts';
import { actFlags, actOf } from '../acts.ts';
import { type Command, UsageError } from '../command.ts';
import { imposeControl, lastingFlag, liftControl } from '../impose-control.ts';
import { storeFlag, withStore } from '../store.ts';
import { knownTopic } from '../topics.ts';

export const topicsConcurrency: Command = {
  name: 'topics concurrency',
  summary: 'limit how many handlers each consumer runs at once; "off" ends the limit',
  operands: '<topic> <count|off>',
  flags: { ...storeFlag, ...lastingFlag, ...actFlags },
  examples: [
    "topics concurrency orders 2 --for 30m --why 'the database is slow'",
    "topics concurrency orders off --why 'it is fast again'",
  ],
  run: (given, terminal) =>
    withStore(given, terminal, async (engine) => {
      const [name, count, ...more] = given.operands;
      if (name === undefined || count === undefined || more.length > 0)
        throw new UsageError('the name of a topic and a count are needed, and no more.');
      const topic = await knownTopic(name, engine.broker);
      const isOff = count === 'off';
      const concurrencyMax = isOff ? 1 : Number(count);
      if (!/^\d+$/.test(count) && !isOff)
        throw new UsageError(`expected a whole number of handlers or "off", got "${count}".`);
      if (concurrencyMax === 0) throw new UsageError('a limit of 0 is a pause: say "holdfast topics pause".');
      const control: Control = { kind: 'concurrency', topic, concurrencyMax };
      const act = actOf(given, terminal);
      return isOff
        ? liftControl(engine, control, act, given, terminal)
        : imposeControl(engine, control, act, given, terminal);
    }),
};

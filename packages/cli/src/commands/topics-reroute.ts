import { actFlags, actOf } from '../acts.ts';
import { type Command, UsageError } from '../command.ts';
import { textOf } from '../given-values.ts';
import { imposeControl, lastingFlag, liftControl } from '../impose-control.ts';
import { storeFlag, withStore } from '../store.ts';
import { knownTopic, topicOperand } from '../topics.ts';

export const topicsReroute: Command = {
  name: 'topics reroute',
  summary: 'let consumers move events to another topic instead of handling them',
  operands: '<topic>',
  flags: {
    ...storeFlag,
    to: { value: 'topic', says: 'where they go' },
    type: { value: 'type', says: 'only events of this type; all unless given' },
    stop: { says: 'end it' },
    ...lastingFlag,
    ...actFlags,
  },
  examples: [
    "topics reroute orders --to orders-slow --type refund --why 'they take minutes'",
    "topics reroute orders --type refund --stop --why 'fixed'",
  ],
  run: (given, terminal) =>
    withStore(given, terminal, async (engine) => {
      const topic = await topicOperand(given, engine.broker);
      const to = textOf(given, 'to');
      const type = textOf(given, 'type');
      const ofType = type === undefined ? {} : { type };
      const act = actOf(given, terminal);
      if (given.flags.stop)
        return liftControl(engine, { kind: 'reroute', topic, to: topic, ...ofType }, act, given, terminal);
      if (to === undefined) throw new UsageError('--to is needed: the topic where events go.');
      if (to === topic) throw new UsageError(`--to: expected another topic than "${topic}".`);
      const control = { kind: 'reroute', topic, to: await knownTopic(to, engine.broker), ...ofType } as const;
      return imposeControl(engine, control, act, given, terminal);
    }),
};

import { actFlags, actOf, byHand, harmlessActFlags } from '../acts.ts';
import type { Command } from '../command.ts';
import { imposeControl, lastingFlag, liftControl } from '../impose-control.ts';
import { quarantineOf, whoseFlags } from '../quarantine-flags.ts';
import { storeFlag, withStore } from '../store.ts';
import { topicOperand } from '../topics.ts';

export const topicsQuarantine: Command = {
  name: 'topics quarantine',
  summary: 'hold the events of one tenant or one key back; others go on',
  operands: '<topic>',
  flags: { ...storeFlag, ...whoseFlags('events'), ...lastingFlag, ...actFlags },
  examples: ["topics quarantine orders --tenant acme --for 1h --why 'their data breaks us'"],
  run: (given, terminal) =>
    withStore(given, terminal, async (engine) => {
      const control = quarantineOf(await topicOperand(given, engine.broker), given);
      return imposeControl(engine, control, actOf(given, terminal), given, terminal);
    }),
};

export const topicsRelease: Command = {
  name: 'topics release',
  summary: 'end a quarantine',
  operands: '<topic>',
  flags: { ...storeFlag, ...whoseFlags('events'), ...harmlessActFlags },
  examples: ['topics release orders --tenant acme'],
  run: (given, terminal) =>
    withStore(given, terminal, async (engine) => {
      const control = quarantineOf(await topicOperand(given, engine.broker), given);
      return liftControl(engine, control, actOf(given, terminal, byHand), given, terminal);
    }),
};

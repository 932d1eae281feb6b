import { controlId, type TopicControl } from '@holdfast/contracts';
import { actFlags, actOf, byHand, harmlessActFlags } from '../acts.ts';
import type { Command } from '../command.ts';
import { imposeControl, pauseLastingFlag } from '../impose-control.ts';
import { storeFlag, withStore } from '../store.ts';
import { topicOperand } from '../topics.ts';

export const topicsPause: Command = {
  name: 'topics pause',
  summary: 'let no consumer take anything more of a topic',
  operands: '<topic>',
  flags: {
    ...storeFlag,
    'only-retries': { says: 'only retries wait; first attempts go on' },
    ...pauseLastingFlag,
    ...actFlags,
  },
  examples: [
    "topics pause orders --for 10m --why 'the bank is down'",
    "topics pause orders --only-retries --why 'it needs a rest'",
  ],
  run: (given, terminal) =>
    withStore(given, terminal, async (engine) => {
      const topic = await topicOperand(given, engine.broker);
      const control: TopicControl = given.flags['only-retries']
        ? { kind: 'pause', topic, only: 'retries' }
        : { kind: 'pause', topic };
      return imposeControl(engine, control, actOf(given, terminal), given, terminal);
    }),
};

export const topicsResume: Command = {
  name: 'topics resume',
  summary: 'let consumers go on, with retries too',
  operands: '<topic>',
  flags: { ...storeFlag, ...harmlessActFlags },
  examples: ['topics resume orders'],
  run: (given, terminal) =>
    withStore(given, terminal, async ({ broker, controls }) => {
      const topic = await topicOperand(given, broker);
      const act = actOf(given, terminal, byHand);
      const wasPaused = await controls.lift(controlId({ kind: 'pause', topic }), act);
      const hadNoRetries = await controls.lift(controlId({ kind: 'pause', topic, only: 'retries' }), act);
      const said = wasPaused || hadNoRetries ? `${topic} goes on.` : `${topic} was not paused.`;
      terminal.out(given.flags.json ? JSON.stringify({ topic, resumed: wasPaused || hadNoRetries }) : said);
      return 0;
    }),
};

import { type TopicControls, topicControls } from '@holdfast/events';
import { type Command, type Flag, type Given, UsageError } from '../command.ts';
import { actOf, msOf, onlyOperand } from '../given-values.ts';
import { storeFlag, withStore } from '../store.ts';
import type { Terminal } from '../terminal.ts';

const actFlags: Record<string, Flag> = {
  why: { value: 'text', says: 'kept with it' },
  who: { value: 'name', says: 'your user name unless given' },
};

export const topicsPause: Command = {
  name: 'topics pause',
  summary: 'let no consumer take anything more of a topic',
  operands: '<topic>',
  flags: { ...storeFlag, ...actFlags, for: { value: 'duration', says: 'goes on by itself after so long' } },
  run: (given, terminal) =>
    steer(given, terminal, async (controls, topic) => {
      const forMs = msOf(given, 'for');
      await controls.pause(actOf(given, terminal.user, 'why', 'by hand'), forMs);
      return `${topic} is paused.`;
    }),
};

export const topicsResume: Command = {
  name: 'topics resume',
  summary: 'let consumers go on',
  operands: '<topic>',
  flags: { ...storeFlag, ...actFlags },
  run: (given, terminal) =>
    steer(given, terminal, async (controls, topic) => {
      const wasPaused = await controls.resume(actOf(given, terminal.user, 'why', 'by hand'));
      return wasPaused ? `${topic} goes on.` : `${topic} was not paused.`;
    }),
};

function steer(
  given: Given,
  terminal: Terminal,
  act: (controls: TopicControls, topic: string) => Promise<string>,
): Promise<number> {
  return withStore(given, terminal, async ({ broker }) => {
    const topic = onlyOperand(given, 'the name of a topic');
    const topics = await broker.topics();
    if (!topics.includes(topic)) {
      throw new UsageError(`there is no topic "${topic}" here; there are: ${topics.join(', ') || 'none'}.`);
    }
    const said = await act(topicControls(broker, topic), topic);
    terminal.out(given.flags.json ? JSON.stringify({ topic, said }) : said);
    return 0;
  });
}

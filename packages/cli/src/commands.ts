import type { Command } from './command.ts';
import { dlqDiscard } from './commands/dlq-discard.ts';
import { dlqGroups } from './commands/dlq-groups.ts';
import { dlqLs } from './commands/dlq-ls.ts';
import { dlqReplay } from './commands/dlq-replay.ts';
import { dlqShow } from './commands/dlq-show.ts';
import { topicsLs } from './commands/topics-ls.ts';
import { topicsPause, topicsResume } from './commands/topics-pause.ts';

/** Everything that `holdfast` can do, in the order in which it is listed. */
export const commands: readonly Command[] = [
  dlqLs,
  dlqShow,
  dlqGroups,
  dlqReplay,
  dlqDiscard,
  topicsLs,
  topicsPause,
  topicsResume,
];

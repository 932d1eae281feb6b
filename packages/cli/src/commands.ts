import type { Command } from './command.ts';
import { dlqDiscard } from './commands/dlq-discard.ts';
import { dlqGroups } from './commands/dlq-groups.ts';
import { dlqLs } from './commands/dlq-ls.ts';
import { dlqReplay } from './commands/dlq-replay.ts';
import { dlqShow } from './commands/dlq-show.ts';
import { explainPolicy } from './commands/explain.ts';
import { lintPolicy } from './commands/lint.ts';
import { simulate } from './commands/simulate.ts';
import { simulateReplay } from './commands/simulate-replay.ts';
import { simulateSweep } from './commands/simulate-sweep.ts';
import { topicsLs } from './commands/topics-ls.ts';
import { topicsPause, topicsResume } from './commands/topics-pause.ts';
import { tunePolicy } from './commands/tune.ts';

/** All commands, in the order in which the help text lists them. */
export const commands: readonly Command[] = [
  dlqLs,
  dlqShow,
  dlqGroups,
  dlqReplay,
  dlqDiscard,
  topicsLs,
  topicsPause,
  topicsResume,
  // The longer names come first, because the first command that matches is run and `simulate` matches all of these.
  simulateSweep,
  simulateReplay,
  simulate,
  tunePolicy,
  explainPolicy,
  lintPolicy,
];

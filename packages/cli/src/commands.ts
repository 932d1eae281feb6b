import type { Command } from './command.ts';
import { assemblyCancel } from './commands/assembly-cancel.ts';
import { assemblyGroups } from './commands/assembly-groups.ts';
import { assemblyLs } from './commands/assembly-ls.ts';
import {
  assemblyPause,
  assemblyQuarantine,
  assemblyRelease,
  assemblyUnpause,
} from './commands/assembly-pause.ts';
import { assemblyResume } from './commands/assembly-resume.ts';
import { assemblyShow } from './commands/assembly-show.ts';
import { assemblySignal } from './commands/assembly-signal.ts';
import { auditLog } from './commands/audit.ts';
import { completionCommand } from './commands/completion.ts';
import { consoleCommand } from './commands/console.ts';
import { dlqDiffers } from './commands/dlq-differs.ts';
import { dlqDiscard } from './commands/dlq-discard.ts';
import { dlqEdit } from './commands/dlq-edit.ts';
import { dlqGroups } from './commands/dlq-groups.ts';
import { dlqKeep } from './commands/dlq-keep.ts';
import { dlqLs } from './commands/dlq-ls.ts';
import { dlqReplay } from './commands/dlq-replay.ts';
import { dlqReplaysLs, dlqReplaysShow } from './commands/dlq-replays.ts';
import { dlqRulesLs, dlqRulesRm, dlqRulesSet, dlqRulesTry } from './commands/dlq-rules.ts';
import { dlqShow } from './commands/dlq-show.ts';
import { doctor } from './commands/doctor.ts';
import { explainPolicy } from './commands/explain.ts';
import { gatewayCheck } from './commands/gateway-check.ts';
import { gatewayDrain } from './commands/gateway-drain.ts';
import { gatewayExport } from './commands/gateway-export.ts';
import { gatewayForce } from './commands/gateway-force.ts';
import { gatewayLs } from './commands/gateway-ls.ts';
import { gatewayReload } from './commands/gateway-reload.ts';
import { gatewayRequest } from './commands/gateway-request.ts';
import { gatewayRun } from './commands/gateway-run.ts';
import { init } from './commands/init.ts';
import { lintPolicy } from './commands/lint.ts';
import { policiesForce, policiesMode, policiesRetries } from './commands/policies-force.ts';
import { policiesLs } from './commands/policies-ls.ts';
import { policiesShow } from './commands/policies-show.ts';
import { simulate } from './commands/simulate.ts';
import { simulateReplay } from './commands/simulate-replay.ts';
import { simulateSweep } from './commands/simulate-sweep.ts';
import { status } from './commands/status.ts';
import { tail } from './commands/tail.ts';
import { topicsConcurrency } from './commands/topics-concurrency.ts';
import { topicsDue } from './commands/topics-due.ts';
import { topicsRetry, topicsSkip, topicsUnblock } from './commands/topics-events.ts';
import { topicsLs } from './commands/topics-ls.ts';
import { topicsPause, topicsResume } from './commands/topics-pause.ts';
import { topicsQuarantine, topicsRelease } from './commands/topics-quarantine.ts';
import { topicsReroute } from './commands/topics-reroute.ts';
import { topicsShow } from './commands/topics-show.ts';
import { topicsWaiting } from './commands/topics-waiting.ts';
import { tunePolicy } from './commands/tune.ts';

/** All commands, in the order in which the help text lists them. */
export const commands: readonly Command[] = [
  status,
  tail,
  auditLog,
  consoleCommand,
  dlqLs,
  dlqShow,
  dlqGroups,
  dlqDiffers,
  dlqEdit,
  dlqReplay,
  dlqReplaysLs,
  dlqReplaysShow,
  dlqDiscard,
  dlqKeep,
  dlqRulesLs,
  dlqRulesSet,
  dlqRulesTry,
  dlqRulesRm,
  topicsLs,
  topicsShow,
  topicsWaiting,
  topicsDue,
  topicsPause,
  topicsResume,
  topicsQuarantine,
  topicsRelease,
  topicsReroute,
  topicsSkip,
  topicsConcurrency,
  topicsRetry,
  topicsUnblock,
  assemblyLs,
  assemblyGroups,
  assemblyShow,
  assemblyResume,
  assemblyCancel,
  assemblySignal,
  assemblyPause,
  assemblyUnpause,
  assemblyQuarantine,
  assemblyRelease,
  policiesLs,
  policiesShow,
  policiesForce,
  policiesRetries,
  policiesMode,
  // The first command that matches is run. `gateway` also matches `gateway check`, so `gatewayRun` is the
  // last.
  gatewayCheck,
  gatewayExport,
  gatewayLs,
  gatewayDrain,
  gatewayReload,
  gatewayRequest,
  gatewayForce,
  gatewayRun,
  // The first command that matches is run. `simulate` also matches `simulate sweep`, so longer names come
  // first.
  simulateSweep,
  simulateReplay,
  simulate,
  tunePolicy,
  explainPolicy,
  lintPolicy,
  init,
  doctor,
  completionCommand(() => commands),
];

import type { PolicyControl } from '@holdfast/contracts';
import {
  controlEffect,
  type FleetControl,
  type FleetState,
  fleetState,
  policiesOf,
  processName,
} from '@holdfast/events';
import { sleep, systemClock } from 'holdfast';
import { actOf } from './acts.ts';
import type { Flag, Given } from './command.ts';
import { unknownPolicy } from './commands/policies-show.ts';
import { endOf } from './control-text.ts';
import { msOf } from './given-values.ts';
import { liftControl } from './impose-control.ts';
import type { OpenStore } from './store.ts';
import { bad, good, type StyledText, warning } from './styled-text.ts';
import { type Cell, table } from './table.ts';
import type { Terminal } from './terminal.ts';
import { printUndo } from './undo-hint.ts';

/**
 * A command waits at most this time (ms) until all processes have read a control. They read the controls
 * every 2 s.
 */
const heardWithinMs = 5000;
const lookEveryMs = 200;

export const policyControlFlags: Readonly<Record<string, Flag>> = {
  unseen: { says: 'also if no process that is here has this policy' },
  'no-wait': { says: 'do not wait until the processes obey' },
};

/**
 * Sets a control of a policy, and waits until each process has read it. The exit code is 1 if a process has
 * not.
 */
export async function imposePolicyControl(
  engine: OpenStore,
  control: PolicyControl,
  given: Given,
  terminal: Terminal,
): Promise<number> {
  const before = await fleetState(engine);
  const isSeen = control.policy === '*' || policiesOf(before.processes, control.policy).length > 0;
  if (!isSeen && !given.flags.unseen) throw unknownPolicy(control.policy, before);
  const { id } = await engine.controls.impose(control, actOf(given, terminal), msOf(given, 'for'));
  const fleet = await heard(engine, id, given.flags['no-wait'] ? 0 : heardWithinMs, terminal);
  const active = fleet.controls.find((each) => each.id === id);
  if (!active) return 0; // the control has ended in the meantime, or another user has removed it
  if (given.flags.json) terminal.out(JSON.stringify(active));
  else {
    terminal.out(
      `${control.policy}: ${controlEffect(control)}, ${endOf(active.until, fleet.now, terminal)}.`,
    );
    await printUndo(engine, `control:${id}`, given, terminal);
    terminal.out(heardTable(active, fleet, terminal));
  }
  return Object.values(active.heard).includes('not_heard') ? 1 : 0;
}

export function liftPolicyControl(
  engine: OpenStore,
  control: PolicyControl,
  given: Given,
  terminal: Terminal,
): Promise<number> {
  return liftControl(engine, control, actOf(given, terminal), given, terminal);
}

/** One row per process: what the process reports about a control. */
export function heardTable(
  { heard: answers }: FleetControl,
  { processes }: FleetState,
  { columns }: Terminal,
): StyledText {
  const rows = processes.map((process) => [processName(process), heardCell(answers[process.id])]);
  if (rows.length === 0) rows.push(['(no process is here)', '']);
  return table(['PROCESS', 'CONTROL'], rows, columns);
}

function heardCell(answer: FleetControl['heard'][string] | undefined): Cell {
  if (answer === 'obeyed') return good('obeyed');
  return answer === 'not_obeyed'
    ? warning('not obeyed: it has nothing that could obey')
    : bad('not heard of');
}

async function heard(
  engine: OpenStore,
  id: string,
  withinMs: number,
  { signal }: Terminal,
): Promise<FleetState> {
  const until = systemClock.now() + withinMs;
  for (;;) {
    const fleet = await fleetState(engine);
    const answers = Object.values(fleet.controls.find((each) => each.id === id)?.heard ?? {});
    if (!answers.includes('not_heard') || systemClock.now() >= until) return fleet;
    await sleep(systemClock, lookEveryMs, signal);
  }
}

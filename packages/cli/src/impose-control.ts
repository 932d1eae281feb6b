import { type Act, type Control, controlId } from '@holdfast/contracts';
import { controlEffect } from '@holdfast/events';
import type { Flag, Given } from './command.ts';
import { endOf } from './control-text.ts';
import { msOf } from './given-values.ts';
import type { OpenStore } from './store.ts';
import type { Terminal } from './terminal.ts';
import { printUndo } from './undo-hint.ts';

export const lastingFlag: Readonly<Record<'for', Flag>> = {
  for: { value: 'duration', says: 'it ends by itself after so long; without it, never' },
};

/** Sets a control, which ends after the time of `--for`, and prints it. */
export async function imposeControl(
  engine: OpenStore,
  control: Control,
  act: Act,
  given: Given,
  terminal: Terminal,
): Promise<number> {
  const active = await engine.controls.impose(control, act, msOf(given, 'for'));
  if (given.flags.json) terminal.out(JSON.stringify(active));
  else {
    const about = 'topic' in control ? control.topic : control.policy;
    terminal.out(`${about}: ${controlEffect(control)}, ${endOf(active.until, active.since, terminal)}.`);
    await printUndo(engine, `control:${active.id}`, terminal);
  }
  return 0;
}

/** Removes a control, and prints that. The exit code is 1 if the control was not set. */
export async function liftControl(
  engine: OpenStore,
  control: Control,
  act: Act,
  given: Given,
  terminal: Terminal,
): Promise<number> {
  const id = controlId(control);
  const isLifted = await engine.controls.lift(id, act);
  if (given.flags.json) terminal.out(JSON.stringify({ id, isLifted }));
  else {
    terminal.out(isLifted ? `control ${id} is removed.` : `there was no control ${id}.`);
    if (isLifted) await printUndo(engine, `control:${id}`, terminal);
  }
  return isLifted ? 0 : 1;
}

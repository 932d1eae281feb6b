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

/** A pause stops all work of a topic or program. So it ends after an hour, even without `--for`. */
const pauseMs = 36e5;

export const pauseLastingFlag: typeof lastingFlag = {
  for: { value: 'duration', says: 'it ends by itself after so long; 1h unless given, "forever" for no end' },
};

/** Returns how long the pause lasts. Undefined: the pause has no end. */
function pauseMsOf(given: Given): number | undefined {
  return given.flags.for === 'forever' ? undefined : (msOf(given, 'for') ?? pauseMs);
}

/** Sets a control (such as a pause). The control ends after the time that the user gives with `--for`. */
export async function imposeControl(
  engine: OpenStore,
  control: Control,
  act: Act,
  given: Given,
  terminal: Terminal,
): Promise<number> {
  const lastingMs = control.kind === 'pause' ? pauseMsOf(given) : msOf(given, 'for');
  const active = await engine.controls.impose(control, act, lastingMs);
  if (given.flags.json) terminal.out(JSON.stringify(active));
  else {
    const about = 'topic' in control ? control.topic : control.policy;
    terminal.out(`${about}: ${controlEffect(control)}, ${endOf(active.until, active.since, terminal)}.`);
    await printUndo(engine, `control:${active.id}`, given, terminal);
  }
  return 0;
}

/** Removes a control. The exit code is 1 if there was no such control. */
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
    if (isLifted) await printUndo(engine, `control:${id}`, given, terminal);
  }
  return isLifted ? 0 : 1;
}

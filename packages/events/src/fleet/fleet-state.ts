import type { ActiveControl, Engine, PresentProcess } from '@holdfast/contracts';
import { OptionsError } from 'holdfast';

/**
 * All processes that share a store, the active controls of operators (such as a pause), and which process
 * obeys which control.
 */
export interface FleetState {
  /** The present time, epoch ms by the store's clock. */
  readonly now: number;
  readonly processes: readonly PresentProcess[];
  readonly controls: readonly FleetControl[];
}

/** An active control of an operator, and which processes obey it. */
export interface FleetControl extends ActiveControl {
  /**
   * For each process id: whether the process obeys this control. `not_heard`: it has not read the control
   * yet. Empty if the control is for a topic.
   */
  readonly heard: Readonly<Record<string, 'obeyed' | 'not_obeyed' | 'not_heard'>>;
}

/** Reads which processes there are, what they report, and which controls are active. */
export async function fleetState(engine: Pick<Engine, 'presence' | 'controls'>): Promise<FleetState> {
  const { presence, controls } = engine;
  if (!presence) throw new OptionsError('engine.presence', presence, 'an engine with a list of processes');
  if (!controls) throw new OptionsError('engine.controls', controls, 'an engine with stored controls');
  const active = await controls.active();
  const processes = await presence.processes();
  return {
    now: active.now,
    processes,
    controls: active.controls.map((control) => ({
      ...control,
      heard: 'policy' in control.control ? heardBy(control, processes) : {},
    })),
  };
}

function heardBy(control: ActiveControl, processes: readonly PresentProcess[]): FleetControl['heard'] {
  return Object.fromEntries(processes.map((process) => [process.id, answerOf(control, process)]));
}

function answerOf({ id, version }: ActiveControl, { controlsVersion, notObeyed }: PresentProcess) {
  if (controlsVersion < version) return 'not_heard';
  return notObeyed.includes(id) ? 'not_obeyed' : 'obeyed';
}

import type { Notify } from './webhook.ts';

/** What the runtime keeps with an assembly: the engine stores it as a text. */
export interface AssemblySettings {
  /** The names of the main steps, for "step 2 of 4". */
  readonly plan?: readonly string[] | undefined;
  /** The class of patience that was chosen. */
  readonly class?: string | undefined;
  /** The assembly that has started this one, and the path of its step. */
  readonly parent?: { readonly id: string; readonly path: string } | undefined;
  readonly notify?: Notify | undefined;
  /** True: a person has accepted that the program was changed, so that results are given by name. */
  readonly lenient?: boolean | undefined;
}

export function readSettings(settings: string | undefined): AssemblySettings {
  return settings === undefined ? {} : (JSON.parse(settings) as AssemblySettings);
}

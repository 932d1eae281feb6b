import type { Notify } from './webhook.ts';

/** Settings of one assembly. The engine stores them with the assembly, as a JSON text. */
export interface AssemblySettings {
  /** The names of the main steps, for the status text "step 2 of 4". */
  readonly plan?: readonly string[] | undefined;
  readonly class?: string | undefined;
  /** For a child: the id of the assembly that started it, and the path of the step that did. */
  readonly parent?: { readonly id: string; readonly path: string } | undefined;
  readonly notify?: Notify | undefined;
  /** True: an operator has accepted a changed program. Recorded results are matched to steps by name only. */
  readonly lenient?: boolean | undefined;
}

export function readSettings(settings: string | undefined): AssemblySettings {
  return settings === undefined ? {} : (JSON.parse(settings) as AssemblySettings);
}

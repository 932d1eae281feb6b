import { type Act, defaultReplay, type Edit, type Operation, type Triage } from '@holdfast/contracts';
import { OptionsError } from 'holdfast';
import { assertKnownFields } from 'holdfast/fields';
import { decode, type PayloadFormat } from '../publish/payload-format.ts';
import { type StandardSchema, validated } from '../publish/standard-schema.ts';
import type { ReplayOptions } from './replay-options.ts';

/** The options of `fixForward`: how the edited payload is checked, and how it is replayed. */
export interface FixOptions {
  /** The schema that the edited payload must match. Default: none. */
  readonly schema?: StandardSchema | undefined;
  /** How payloads are stored. `json`: any value, as JSON. `raw`: text or bytes, unchanged. Default: `json`. */
  readonly format?: PayloadFormat | undefined;
  /**
   * The settings of the replay. A canary (a test with a few events first) is useless for one event. Default:
   * those of `ReplayOptions`, without a canary.
   */
  readonly request?: ReplayOptions | undefined;
}

const known: Readonly<Record<keyof FixOptions, true>> = { schema: true, format: true, request: true };

/** Edits a parked event and starts a replay of it. If the new payload is invalid, nothing is changed. */
export async function fixForward(
  triage: Triage,
  id: string,
  edit: Edit,
  act: Act,
  options: FixOptions = {},
): Promise<Operation> {
  assertKnownFields(known, options);
  const { schema, format = 'json', request } = options;
  if (edit.payload !== undefined) {
    const value = decode(format, edit.payload);
    if (schema) await validated(schema, value);
  }
  const edited = await triage.edit(id, edit, act);
  if (!edited) throw new OptionsError('id', id, 'the id of a parked event');
  // A canary is a test with a few events first. For one event it is useless, so the default is none.
  return triage.operations.begin({ ...defaultReplay, canary: 0, ...request, filter: { ids: [id] } }, act);
}

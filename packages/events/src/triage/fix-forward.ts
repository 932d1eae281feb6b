import {
  type Act,
  defaultReplay,
  type Edit,
  type ReplayOperation,
  type ReplayRequest,
  type Triage,
} from '@holdfast/contracts';
import { OptionsError } from 'holdfast';
import { assertKnownFields } from 'holdfast/fields';
import { decode, type PayloadFormat } from '../publish/payload-format.ts';
import { type StandardSchema, validated } from '../publish/standard-schema.ts';

export interface FixOptions {
  /** The edited payload must match this schema, otherwise nothing is changed. */
  readonly schema?: StandardSchema | undefined;
  readonly format?: PayloadFormat | undefined;
  readonly request?: Partial<Omit<ReplayRequest, 'filter'>> | undefined;
}

const known: Readonly<Record<keyof FixOptions, true>> = { schema: true, format: true, request: true };

/** Edits a parked event and begins a replay of this event only. An invalid payload changes nothing. */
export async function fixForward(
  triage: Triage,
  id: string,
  edit: Edit,
  act: Act,
  options: FixOptions = {},
): Promise<ReplayOperation> {
  assertKnownFields(known, options);
  const { schema, format = 'json', request } = options;
  if (edit.payload !== undefined) {
    const value = decode(format, edit.payload);
    if (schema) await validated(schema, value);
  }
  const edited = await triage.edit(id, edit, act);
  if (!edited) throw new OptionsError('id', id, 'the id of a parked event');
  // A canary (a first release of a few events) is useless for a single event.
  return triage.replays.begin({ ...defaultReplay, canary: 0, ...request, filter: { ids: [id] } }, act);
}

import { useState } from 'preact/hooks';
import { ask } from '../api.ts';
import { ActDialog } from '../parts/act-dialog.tsx';
import { shellWord } from '../shell-word.ts';
import { tell } from '../toast.tsx';
import type { AssemblyStep } from './assembly-look.ts';

interface Props {
  readonly act: (typeof assemblyActs)[number];
  readonly id: string;
  readonly input: string;
  readonly steps: readonly AssemblyStep[];
  /** The path of the step to edit; `undefined`: edit the input of the assembly (work of several steps). */
  readonly step: string | undefined;
  readonly again: () => void;
  readonly close: () => void;
}

export const assemblyActs = ['resume', 'edit', 'cancel'] as const;

export function AssemblyActDialog(props: Props) {
  if (props.act === 'edit') return <EditDialog {...props} />;
  return props.act === 'resume' ? <ResumeDialog {...props} /> : <CancelDialog {...props} />;
}

function ResumeDialog({ id, again, close }: Props) {
  const [acceptChange, setAcceptChange] = useState(false);
  return (
    <ActDialog
      title={`Resume ${id}`}
      verb="Resume"
      command={`holdfast assembly resume ${shellWord(id)}${acceptChange ? ' --accept-change' : ''}`}
      close={close}
      act={async (why, key) => {
        await ask('POST /assemblies/:id/resume', {
          path: { id },
          body: { why, ...(acceptChange && { acceptChange }) },
          headers: { 'idempotency-key': key },
        });
        again();
        tell(`${id} goes on.`);
      }}
    >
      <p>It goes on from the step that was given up; steps that are done are not done again.</p>
      <label class="check">
        <input
          type="checkbox"
          checked={acceptChange}
          onChange={({ currentTarget }) => setAcceptChange(currentTarget.checked)}
        />{' '}
        The program has changed: give recorded results by name
      </label>
    </ActDialog>
  );
}

function CancelDialog({ id, steps, again, close }: Props) {
  const undone = steps.filter(({ kind, state }) => kind !== 'sleep' && kind !== 'wait' && state === 'done');
  return (
    <ActDialog
      title={`Cancel ${id}`}
      verb="Cancel and compensate"
      command={`holdfast assembly cancel ${shellWord(id)}`}
      isDestructive
      close={close}
      act={async (why, key) => {
        await ask('POST /assemblies/:id/cancel', {
          path: { id },
          body: { why },
          headers: { 'idempotency-key': key },
        });
        again();
        tell(`${id} stops.`);
      }}
    >
      <p>
        It stops, and what it has done is compensated, the latest first
        {undone.length > 0
          ? `: ${undone
              .map(({ path }) => path)
              .toReversed()
              .join(', ')}`
          : ''}
        . This cannot be undone.
      </p>
    </ActDialog>
  );
}

function EditDialog({ id, input, steps, step: named, again, close }: Props) {
  const step = steps.find(({ path }) => path === named);
  const [text, setText] = useState(pretty(step ? (step.result ?? 'null') : input));
  const value = parsed(text);
  const flag = step
    ? `--result ${shellWord(`${step.path}=${flat(text)}`)}`
    : `--input ${shellWord(flat(text))}`;
  return (
    <ActDialog
      title={step ? `The result of ${step.path}` : `The input of ${id}`}
      verb={step ? 'Set the result' : 'Set the input'}
      command={`holdfast assembly resume ${shellWord(id)} ${flag}`}
      close={close}
      act={async (why, key) => {
        if (!value.isJson) throw new Error(value.error);
        const change = step ? { results: { [step.path]: value.json } } : { input: value.json };
        await ask('PATCH /assemblies/:id', {
          path: { id },
          body: { ...change, why },
          headers: { 'idempotency-key': key },
        });
        again();
        tell(step ? `${step.path} counts as done.` : 'The input is changed.');
      }}
    >
      <p>
        {step
          ? 'The step counts as done with this result; it is not done again. Resume the assembly afterwards.'
          : 'Steps that are not done yet see the new input. Resume the assembly afterwards.'}{' '}
        The command does both.
      </p>
      <label class="field">
        <span>JSON</span>
        <textarea
          rows={8}
          class="mono"
          value={text}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
        />
      </label>
      {!value.isJson && <p class="is-retrying small">{value.error}</p>}
    </ActDialog>
  );
}

type Parsed =
  | { readonly isJson: true; readonly json: unknown }
  | { readonly isJson: false; readonly error: string };

function parsed(text: string): Parsed {
  try {
    return { isJson: true, json: JSON.parse(text) as unknown };
  } catch (error) {
    return { isJson: false, error: `this is not JSON: ${(error as Error).message}` };
  }
}

function pretty(text: string): string {
  const value = parsed(text);
  return value.isJson ? JSON.stringify(value.json, null, 2) : text;
}

function flat(text: string): string {
  const value = parsed(text);
  return value.isJson ? JSON.stringify(value.json) : '…';
}

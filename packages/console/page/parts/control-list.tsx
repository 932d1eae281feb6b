import type { AnswerOf } from '../../src/api/routes.ts';
import { ask } from '../api.ts';
import { shellWord } from '../shell-word.ts';
import { tellDone } from '../undo.ts';
import { useQuery } from '../use-query.ts';
import { ActButton, ActDialog } from './act-dialog.tsx';
import { Ago } from './ago.tsx';
import { Glyph } from './glyph.tsx';

export type Control = AnswerOf<'GET /controls'>['items'][number];

const verbs: Readonly<Record<string, string>> = {
  pause: 'Resume',
  quarantine: 'Release',
  breaker: 'Let it decide',
};

/**
 * Lists controls (such as a pause that an operator set): who, why, until when, and how many processes obey.
 */
export function ControlList({
  controls,
  isNamed,
  again,
}: {
  readonly controls: readonly Control[];
  /** True: each row shows the topic or policy of the control. */
  readonly isNamed?: boolean;
  readonly again: () => void;
}) {
  const { query, go, replace } = useQuery();
  const lifted = controls.find(({ id }) => id === query.end);
  if (controls.length === 0) return <p class="quiet small">None: nothing is held by hand.</p>;
  return (
    <>
      <ul class="checks">
        {controls.map((control) => (
          <li key={control.id}>
            <Glyph state="waiting" label="held" />
            <span>
              <b>{isNamed ? `${control.about}: ${control.says}` : control.says}</b>
              <small>
                {control.who}, <Ago at={control.since} />: “{control.why}”.{' '}
                {control.until === undefined ? (
                  'No end is set.'
                ) : (
                  <>
                    Ends by itself <Ago at={control.until} future />.
                  </>
                )}
                <Heard control={control} />
              </small>
              <span class="acts">
                <ActButton isTiny onClick={() => go({ end: control.id })}>
                  {verbs[control.kind] ?? 'End it'}…
                </ActButton>
              </span>
            </span>
          </li>
        ))}
      </ul>
      {lifted && <EndControl control={lifted} again={again} close={() => replace({ end: undefined })} />}
    </>
  );
}

function Heard({ control: { heard } }: { readonly control: Control }) {
  if (!heard) return null;
  const says = [
    `${heard.obeyed} ${heard.obeyed === 1 ? 'process obeys' : 'processes obey'}`,
    ...(heard.notObeyed > 0 ? [`${heard.notObeyed} cannot obey`] : []),
    ...(heard.notHeard > 0 ? [`${heard.notHeard} have not heard of it yet`] : []),
  ];
  return <> {says.join(', ')}.</>;
}

function EndControl({
  control,
  again,
  close,
}: {
  readonly control: Control;
  readonly again: () => void;
  readonly close: () => void;
}) {
  const { id, about, says, kind } = control;
  const verb = verbs[kind] ?? 'End it';
  return (
    <ActDialog
      title={`${verb}: ${about}`}
      verb={verb}
      command={endCommand(control)}
      close={close}
      act={async (why, key) => {
        await ask('DELETE /controls/:id', {
          path: { id },
          body: { why },
          headers: { 'idempotency-key': key },
        });
        again();
        await tellDone(`${about} is no longer ${says}.`, `control:${id}`);
      }}
    >
      <p>
        {about}: {says}. After this it is as if nobody had set it; consumers hear of it within seconds.
      </p>
    </ActDialog>
  );
}

/**
 * Returns the command that ends a control (such as a pause). The id of a control has encoded parts between
 * colons.
 */
function endCommand({ id, about }: Control): string {
  const [kind, , ...rest] = id.split(':').map(decodeURIComponent);
  const program = about.startsWith('assembly/') ? shellWord(about.slice('assembly/'.length)) : undefined;
  const name = shellWord(about);
  switch (kind) {
    case 'pause':
      return program ? `holdfast assembly unpause ${program}` : `holdfast topics resume ${name}`;
    case 'quarantine':
      return `holdfast ${program ? `assembly release ${program}` : `topics release ${name}`} --${rest[0]} ${shellWord(rest[1] ?? '')}`;
    case 'skip':
      return `holdfast topics skip ${name} ${rest[0]} --undo`;
    case 'reroute':
      return `holdfast topics reroute ${name}${rest[0] ? ` --type ${shellWord(rest[0])}` : ''} --stop`;
    case 'concurrency':
      return `holdfast topics concurrency ${name} off`;
    case 'breaker':
      return `holdfast policies force ${name} auto${rest[0] ? ` --target ${shellWord(rest[0])}` : ''}`;
    case 'retries':
      return `holdfast policies retries ${name} on`;
    default:
      return `holdfast policies mode ${name} auto`;
  }
}

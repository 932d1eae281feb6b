import { useState } from 'preact/hooks';
import { ask } from '../api.ts';
import { ActDialog, CommandLine } from '../parts/act-dialog.tsx';
import { shellWord } from '../shell-word.ts';
import { tell } from '../toast.tsx';
import type { Upstream } from './gateway-state.ts';

export const gatewayActs = ['drain', 'resume', 'force', 'reload'] as const;

interface Props {
  readonly act: (typeof gatewayActs)[number];
  readonly upstream: Upstream | undefined;
  readonly instance: string;
  readonly again: () => void;
  readonly close: () => void;
}

/** A command to a gateway, such as drain, applies until it is undone or the gateway restarts. */
export function GatewayActDialog(props: Props) {
  if (props.act === 'reload') return <ReloadDialog {...props} />;
  return props.act === 'force' ? <ForceDialog {...props} /> : <DrainDialog {...props} />;
}

function DrainDialog({ act, upstream, instance, again, close }: Props) {
  const isDrain = act === 'drain';
  const name = upstream?.name ?? '';
  return (
    <ActDialog
      title={`${isDrain ? 'Drain' : 'Resume'} ${instance}`}
      verb={isDrain ? 'Drain' : 'Resume'}
      close={close}
      act={async (why, key) => {
        const route = isDrain
          ? 'POST /gateway/upstreams/:upstream/:instance/drain'
          : 'POST /gateway/upstreams/:upstream/:instance/resume';
        await ask(route, {
          path: { upstream: name, instance },
          body: { why },
          headers: { 'idempotency-key': key },
        });
        again();
        tell(isDrain ? `${instance} gets no new requests.` : `${instance} gets requests again.`);
      }}
    >
      <p>
        {isDrain
          ? `No new request of ${name} goes to it; those in flight end. Others take its share.`
          : `Requests of ${name} go to it again.`}
      </p>
      <CommandLine
        command={`holdfast gateway drain ${shellWord(name)} ${shellWord(instance)}${isDrain ? '' : ' --resume'}`}
      />
    </ActDialog>
  );
}

const forces = {
  open: ['keep open', 'Nothing is sent to it until somebody lets it decide again.'],
  closed: ['keep closed', 'Everything is sent to it, whatever it answers.'],
  auto: ['let it decide', 'It opens and closes by what it sees.'],
} as const;

function ForceDialog({ upstream, instance, again, close }: Props) {
  const forced = upstream?.instances.find(({ name }) => name === instance)?.forced;
  const [to, setTo] = useState<keyof typeof forces>(forced ? 'auto' : 'open');
  const policy = upstream?.policies[0] ?? '';
  const [says, happens] = forces[to];
  return (
    <ActDialog
      title={`The breaker of ${instance}`}
      verb={says.charAt(0).toUpperCase() + says.slice(1)}
      command={`holdfast gateway force ${shellWord(policy)} ${to} --target ${shellWord(instance)}`}
      close={close}
      act={async (why, key) => {
        await ask('POST /gateway/breakers', {
          body: { policy, target: instance, to, why },
          headers: { 'idempotency-key': key },
        });
        again();
        tell(`The breaker of ${instance}: ${says}.`);
      }}
    >
      <p>{happens} It has no end by itself.</p>
      <label class="field">
        <span>What?</span>
        <select value={to} onChange={(event) => setTo(event.currentTarget.value as typeof to)}>
          {Object.entries(forces).map(([value, [word]]) => (
            <option key={value} value={value}>
              {word}
            </option>
          ))}
        </select>
      </label>
    </ActDialog>
  );
}

function ReloadDialog({ again, close }: Props) {
  return (
    <ActDialog
      title="Reload the file"
      verb="Reload"
      close={close}
      act={async (why, key) => {
        try {
          await ask('POST /gateway/reload', { body: { why }, headers: { 'idempotency-key': key } });
        } finally {
          again();
        }
        tell('The file is in force.');
      }}
    >
      <p>
        The gateway reads its file again. Breakers, budgets and connections are kept. A file with a mistake
        changes nothing, and is told with line and column.
      </p>
      <CommandLine command="holdfast gateway reload" />
    </ActDialog>
  );
}

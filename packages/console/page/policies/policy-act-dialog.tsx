import { useState } from 'preact/hooks';
import { ask } from '../api.ts';
import { many } from '../format.ts';
import { ActDialog } from '../parts/act-dialog.tsx';
import { LastingField, lastingBody, lastingFlag, usualLasting } from '../parts/lasting.tsx';
import { shellWord } from '../shell-word.ts';
import { tellDone } from '../undo.ts';
import type { PolicyState } from './policy-state.ts';

export const policyActs = ['force', 'retries', 'mode'] as const;

interface Props {
  readonly act: (typeof policyActs)[number];
  readonly policy: PolicyState;
  readonly target: string | undefined;
  readonly to: string | undefined;
  readonly again: () => void;
  readonly close: () => void;
}

interface Choice {
  readonly says: string;
  readonly happens: string;
}

const forces: Readonly<Record<string, Choice>> = {
  open: { says: 'keep open', happens: 'Nothing is sent to it. Work that may wait, waits.' },
  closed: {
    says: 'keep closed',
    happens: 'Everything is sent to it, whatever it answers. Failures still count.',
  },
  auto: { says: 'let it decide', happens: 'It opens and closes by what it sees.' },
};
const switches: Readonly<Record<string, Choice>> = {
  off: { says: 'off', happens: 'Each piece of work is one attempt. Use it when retries make things worse.' },
  on: { says: 'on', happens: 'The policy retries again, as its document says.' },
};
const modes: Readonly<Record<string, Choice>> = {
  observe: {
    says: 'observe',
    happens: 'It decides and counts, and changes nothing: work is done as without it.',
  },
  enforce: { says: 'enforce', happens: 'It acts on all work.' },
  auto: { says: 'as its document says', happens: 'The document decides again.' },
};
const choices = { force: forces, retries: switches, mode: modes };
const titles = { force: 'Force breakers of', retries: 'Retries of', mode: 'Mode of' };

/** Sets a control of a policy in all processes, for example to keep a circuit breaker open for some time. */
export function PolicyActDialog({ act, policy, target, to: asked, again, close }: Props) {
  const options = choices[act];
  const [to, setTo] = useState(
    asked !== undefined && Object.hasOwn(options, asked) ? asked : Object.keys(options)[0]!,
  );
  const [which, setWhich] = useState(target ?? '');
  const [lasting, setLasting] = useState(usualLasting);
  const targets = [...new Set(policy.targets.flatMap((each) => (each.breaker && each.target) || []))];
  const isEnd = to === 'auto' || to === 'on';
  const { says, happens } = options[to]!;
  const { name } = policy;
  const flags = `${which === '' || act !== 'force' ? '' : ` --target ${shellWord(which)}`}${isEnd ? '' : lastingFlag(lasting)}`;
  return (
    <ActDialog
      title={`${titles[act]} ${name}`}
      verb={verbs[act](says)}
      command={`holdfast policies ${act} ${shellWord(name)} ${to}${flags}`}
      close={close}
      act={async (why, key) => {
        const id = await steer(act, name, { to, which, why, key, ...(isEnd ? {} : lastingBody(lasting)) });
        again();
        const about =
          act === 'force' ? `Breakers of ${name}` : act === 'retries' ? `Retries of ${name}` : name;
        await tellDone(`${about}: ${says}.`, id === undefined ? `policy:${name}` : `control:${id}`);
      }}
    >
      <p>
        {happens} {many(policy.processes, 'process', 'processes')} {policy.processes === 1 ? 'hears' : 'hear'}{' '}
        of it within seconds.
      </p>
      <div class="fields">
        {act === 'force' && (
          <label class="field">
            <span>Which breaker?</span>
            <select value={which} onChange={(event) => setWhich(event.currentTarget.value)}>
              <option value="">all of them</option>
              {targets.map((each) => (
                <option key={each} value={each}>
                  {each}
                </option>
              ))}
            </select>
          </label>
        )}
        <label class="field">
          <span>What?</span>
          <select value={to} onChange={(event) => setTo(event.currentTarget.value)}>
            {Object.entries(options).map(([value, option]) => (
              <option key={value} value={value}>
                {option.says}
              </option>
            ))}
          </select>
        </label>
        {!isEnd && <LastingField value={lasting} onChange={setLasting} />}
      </div>
    </ActDialog>
  );
}

const verbs = {
  force: (says: string) => says.charAt(0).toUpperCase() + says.slice(1),
  retries: (says: string) => `Switch ${says}`,
  mode: (says: string) => `Set to ${says}`,
};

/** Sets or removes a control. Returns the id of the control, or `undefined` if the control was removed. */
async function steer(
  act: Props['act'],
  policy: string,
  given: { to: string; which: string; why: string; key: string; forMs?: number },
): Promise<string | undefined> {
  const { to, which, why, key, forMs } = given;
  const lasting = forMs === undefined ? {} : { forMs };
  const common = { path: { policy }, headers: { 'idempotency-key': key } };
  const answer =
    act === 'force'
      ? await ask('POST /policies/:policy/breaker', {
          ...common,
          body: { to: to as 'open', why, ...(which !== '' && { target: which }), ...lasting },
        })
      : act === 'retries'
        ? await ask('POST /policies/:policy/retries', {
            ...common,
            body: { to: to as 'off', why, ...lasting },
          })
        : await ask('POST /policies/:policy/mode', {
            ...common,
            body: { to: to as 'observe', why, ...lasting },
          });
  return answer.control?.id;
}

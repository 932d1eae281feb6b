import type { PolicyControl } from '@holdfast/contracts';
import { actFlags } from '../acts.ts';
import { type Command, type Given, UsageError } from '../command.ts';
import { textOf } from '../given-values.ts';
import { lastingFlag } from '../impose-control.ts';
import { imposePolicyControl, liftPolicyControl, policyControlFlags } from '../policy-controls.ts';
import { storeFlag, withStore } from '../store.ts';

const flags = { ...storeFlag, ...lastingFlag, ...actFlags, ...policyControlFlags };

export const policiesForce: Command = {
  name: 'policies force',
  summary: 'keep breakers of a policy open or closed in every process; "auto" ends it',
  operands: '<policy> <open|closed|auto>',
  flags: { ...flags, target: { value: 'target', says: 'only the breaker of this target; all unless given' } },
  examples: [
    "policies force payment open --target bank --for 5m --why 'the bank asked for a pause'",
    "policies force payment auto --target bank --why 'they are back'",
  ],
  run: (given, terminal) =>
    withStore(given, terminal, (engine) => {
      const { policy, word } = wordsOf(given, ['open', 'closed', 'auto']);
      const target = textOf(given, 'target');
      const control: PolicyControl = {
        kind: 'breaker',
        policy,
        state: word === 'closed' ? 'closed' : 'open',
        ...(target !== undefined && { target }),
      };
      const change = word === 'auto' ? liftPolicyControl : imposePolicyControl;
      return change(engine, control, given, terminal);
    }),
};

export const policiesRetries: Command = {
  name: 'policies retries',
  summary: 'switch retries of a policy off in every process, or on again',
  operands: '<policy> <off|on>',
  flags,
  examples: ["policies retries payment off --for 15m --why 'retries make it worse'"],
  run: (given, terminal) =>
    withStore(given, terminal, (engine) => {
      const { policy, word } = wordsOf(given, ['off', 'on']);
      const control: PolicyControl = { kind: 'retries', policy, state: 'off' };
      const change = word === 'on' ? liftPolicyControl : imposePolicyControl;
      return change(engine, control, given, terminal);
    }),
};

export const policiesMode: Command = {
  name: 'policies mode',
  summary: 'let a policy only observe, or enforce, in every process; "auto" is what its document says',
  operands: '<policy> <observe|enforce|auto>',
  flags,
  examples: ["policies mode payment observe --for 1h --why 'is it the policy?'"],
  run: (given, terminal) =>
    withStore(given, terminal, (engine) => {
      const { policy, word } = wordsOf(given, ['observe', 'enforce', 'auto']);
      const mode = word === 'observe' ? 'observe' : 'enforce';
      const change = word === 'auto' ? liftPolicyControl : imposePolicyControl;
      return change(engine, { kind: 'mode', policy, mode }, given, terminal);
    }),
};

function wordsOf({ operands }: Given, words: readonly string[]): { policy: string; word: string } {
  const [policy, word, ...more] = operands;
  if (policy === undefined || word === undefined || more.length > 0)
    throw new UsageError(`the name of a policy and one of ${words.join(', ')} are needed, and no more.`);
  if (!words.includes(word)) throw new UsageError(`expected one of ${words.join(', ')}, got "${word}".`);
  return { policy, word };
}

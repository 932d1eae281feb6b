import { isEmptyFilter, type TriageRule } from '@holdfast/contracts';
import { spanText } from '@holdfast/events';
import { actFlags, actOf } from '../acts.ts';
import { type Command, type Given, UsageError } from '../command.ts';
import { didYouMean } from '../did-you-mean.ts';
import { msOf, onlyOperand, textOf } from '../given-values.ts';
import { filterFlags, filterOf } from '../parked-flags.ts';
import { parkedStatuses } from '../parked-ids.ts';
import { type OpenStore, storeFlag, withStore } from '../store.ts';
import { table } from '../table.ts';
import { printUndo } from '../undo-hint.ts';

const actions: readonly TriageRule['action'][] = ['replay', 'discard', 'notify'];
/** "dlq rules try" tests a rule on the events that were parked within the last 24 hours. */
const triedMs = 864e5;

export const dlqRulesLs: Command = {
  name: 'dlq rules ls',
  summary: 'rules for events that are parked from now on; the first that matches is applied',
  flags: storeFlag,
  examples: ['dlq rules ls'],
  run: (given, terminal) =>
    withStore(given, terminal, async ({ triage }) => {
      const rules = await triage.rules();
      if (given.flags.json) for (const rule of rules) terminal.out(JSON.stringify(rule));
      else if (rules.length === 0) terminal.out('There are no rules here.');
      else {
        const rows = rules.map(({ name, action, afterMs = 0, filter }) => [
          ...[name, action, afterMs === 0 ? 'at once' : spanText(afterMs)],
          JSON.stringify(filter),
        ]);
        terminal.out(table(['RULE', 'ACTION', 'AFTER', 'EVENTS'], rows, terminal.columns));
      }
      return 0;
    }),
};

export const dlqRulesSet: Command = {
  name: 'dlq rules set',
  summary: 'add a rule, or replace the one of this name; maintenance applies it',
  operands: '<name>',
  flags: {
    ...storeFlag,
    ...filterFlags,
    action: { value: 'action', says: `${actions.join(', ')} (needed)` },
    after: { value: 'duration', says: 'wait so long after an event was parked; at once unless given' },
    ...actFlags,
  },
  examples: [
    "dlq rules set retry-timeouts --reason TimeoutError --action replay --after 10m --why 'the bank is flaky'",
  ],
  run: (given, terminal) =>
    withStore(given, terminal, async (engine) => {
      const name = onlyOperand(given, 'the name of a rule');
      const action = actions.find((each) => each === textOf(given, 'action'));
      if (action === undefined)
        throw new UsageError(
          `--action: expected one of ${actions.join(', ')}, got "${textOf(given, 'action') ?? ''}".`,
        );
      const filter = await filterOf(given, engine, true);
      if (isEmptyFilter(filter)) throw new UsageError('which events? Say a filter such as --reason.');
      const afterMs = msOf(given, 'after');
      const rule: TriageRule = { name, filter, action, ...(afterMs !== undefined && { afterMs }) };
      await engine.triage.setRule(rule, actOf(given, terminal));
      terminal.out(given.flags.json ? JSON.stringify(rule) : `rule ${name} is set.`);
      if (!given.flags.json) await printUndo(engine, `rule:${name}`, given, terminal);
      return 0;
    }),
};

export const dlqRulesTry: Command = {
  name: 'dlq rules try',
  summary: 'how many events of the last 24 hours a rule, or a filter, would have matched',
  operands: '[name]',
  flags: { ...storeFlag, ...filterFlags },
  examples: ['dlq rules try retry-timeouts', 'dlq rules try --reason TimeoutError'],
  run: (given, terminal) =>
    withStore(given, terminal, async (engine) => {
      const own = await filterOf(given, engine);
      const filter = given.operands.length > 0 ? (await ruleOf(given, engine)).filter : own;
      if (given.operands.length > 0 && !isEmptyFilter(own))
        throw new UsageError('say the name of a rule, or a filter: not both.');
      if (isEmptyFilter(filter)) throw new UsageError('which events? Say the name of a rule, or a filter.');
      const { now } = await engine.controls.active();
      const from = Math.max(filter.from ?? 0, now - triedMs);
      const count = await engine.triage.count({ ...filter, from, status: parkedStatuses });
      const text = `${count} ${count === 1 ? 'event' : 'events'} of the last 24 hours would have matched.`;
      terminal.out(given.flags.json ? JSON.stringify({ count }) : text);
      return 0;
    }),
};

export const dlqRulesRm: Command = {
  name: 'dlq rules rm',
  summary: 'remove a rule',
  operands: '<name>',
  flags: { ...storeFlag, ...actFlags },
  examples: ["dlq rules rm retry-timeouts --why 'the bank is well again'"],
  run: (given, terminal) =>
    withStore(given, terminal, async (engine) => {
      const { name } = await ruleOf(given, engine);
      const isRemoved = await engine.triage.removeRule(name, actOf(given, terminal));
      const text = isRemoved ? `rule ${name} is removed.` : `there was no rule ${name} any more.`;
      terminal.out(given.flags.json ? JSON.stringify({ name, isRemoved }) : text);
      if (isRemoved && !given.flags.json) await printUndo(engine, `rule:${name}`, given, terminal);
      return isRemoved ? 0 : 1;
    }),
};

async function ruleOf(given: Given, { triage }: OpenStore): Promise<TriageRule> {
  const name = onlyOperand(given, 'the name of a rule');
  const rules = await triage.rules();
  const found = rules.find((rule) => rule.name === name);
  if (found) return found;
  const meant = didYouMean(
    name,
    rules.map((rule) => rule.name),
  );
  throw new UsageError(`there is no rule "${name}" here${meant || '.'}`);
}

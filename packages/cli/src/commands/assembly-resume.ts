import { readFileSync } from 'node:fs';
import type { AssemblyEdit } from '@holdfast/assembly';
import { actFlags, actOf } from '../acts.ts';
import { wholeAssemblyId, withAssemblies } from '../assembly-ids.ts';
import { type Command, type Given, UsageError } from '../command.ts';
import { countOf, textOf } from '../given-values.ts';
import { storeFlag } from '../store.ts';

export const assemblyResume: Command = {
  name: 'assembly resume',
  summary: 'let parked assemblies go on from the step that failed',
  operands: '<id…>',
  flags: {
    ...storeFlag,
    ...actFlags,
    input: { value: 'JSON or @file', says: 'another input' },
    result: { value: 'step=JSON', says: 'a step counts as done with this result', many: true },
    version: { value: 'number', says: 'go on with this version of the program' },
    'accept-change': { says: 'the program has changed: give recorded results by name' },
  },
  examples: [
    "assembly resume 14e22cc7 --why 'the bank is back'",
    `assembly resume 14e22cc7 --result 'ship={"label":7}' --why 'sent by hand'`,
    "assembly resume 14e22cc7 --version 3 --accept-change --why 'the step was renamed'",
  ],
  run: (given, terminal) =>
    withAssemblies(given, terminal, async (work) => {
      if (given.operands.length === 0) throw new UsageError('the id of an assembly is needed.');
      const act = actOf(given, terminal);
      const edit = editOf(given);
      const version = countOf(given, 'version', 0);
      const options = {
        acceptChange: given.flags['accept-change'] === true,
        ...(version !== undefined && { version }),
      };
      let code = 0;
      for (const operand of given.operands) {
        const id = await wholeAssemblyId(operand, work.journal);
        try {
          if (edit) await work.edit(id, edit, act);
          await work.resume(id, act, options);
          terminal.out(given.flags.json ? JSON.stringify({ id, isResumed: true }) : `${id} goes on.`);
        } catch (error) {
          const { code: known, message } = error as { code?: string; message: string };
          if (known !== 'HOLDFAST_ASSEMBLY_STATE') throw error;
          terminal.out(given.flags.json ? JSON.stringify({ id, isResumed: false, message }) : `${message}.`);
          code = 1;
        }
      }
      return code;
    }),
};

function editOf(given: Given): AssemblyEdit | undefined {
  const text = textOf(given, 'input');
  const results = (given.lists.result ?? []).map((each) => {
    const [, step, json] = /^([^=]+)=(.*)$/s.exec(each) ?? [];
    if (step === undefined || json === undefined)
      throw new UsageError(`--result: expected step=JSON, got "${each}".`);
    return [step, parsed('result', json)] as const;
  });
  if (text === undefined && results.length === 0) return undefined;
  return {
    ...(text !== undefined && { input: parsed('input', fileOr(text)) }),
    results: Object.fromEntries(results),
  };
}

function fileOr(text: string): string {
  if (!text.startsWith('@')) return text;
  try {
    return readFileSync(text.slice(1), 'utf8');
  } catch (error) {
    throw new UsageError(`--input: ${text.slice(1)} cannot be read: ${(error as Error).message}.`);
  }
}

function parsed(flag: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError(`--${flag}: expected JSON, got "${text}".`);
  }
}

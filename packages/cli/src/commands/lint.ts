import { METHODS } from 'node:http';
import { ConfigError, type Problem, parsePolicies, readDocument } from '@holdfast/config';
import { type Finding, lint } from 'holdfast/lint';
import { type Command, type Given, UsageError } from '../command.ts';
import { didYouMean } from '../did-you-mean.ts';
import { readText } from '../files.ts';
import { msOf, onlyOperand, textOf } from '../given-values.ts';
import { bad, styled, warning } from '../styled-text.ts';
import { wrapText } from '../text-width.ts';
import { noPolicyIn } from './explain.ts';

interface Placed extends Pick<Problem, 'line' | 'column' | 'path'> {
  /** Null for a finding about the whole document. */
  readonly policy: string | null;
  readonly severity: Finding['severity'];
  readonly rule: string;
  readonly message: string;
  readonly fix: string | null;
}

export const lintPolicy: Command = {
  name: 'lint',
  summary: 'what is wrong with a policy, with line and column',
  operands: '<policy.yaml>',
  flags: {
    policy: { value: 'name', says: 'only this policy of the file' },
    strict: { says: 'warnings are as bad as errors' },
    method: { value: 'HTTP method', says: 'of the requests it is for' },
    p999: { value: 'duration', says: 'what all but one attempt in a thousand take' },
  },
  examples: ['lint policies.yaml', 'lint policies.yaml --policy payment --method POST --strict'],
  async run(given, terminal) {
    const file = onlyOperand(given, 'a file of policies');
    const found = findingsIn(await readText(file), file, given);
    for (const each of found) {
      const { line, column, severity, rule, message, fix } = each;
      if (given.flags.json) terminal.out(JSON.stringify({ file, ...each }));
      else {
        const text = `${severity}: ${message}${fix === null ? '' : ` ${fix}`} (${rule})`;
        const whole = wrapText(`${file}:${line}:${column}: ${text}`, terminal.columns, 2);
        terminal.out(
          styled(severity === 'error' ? bad(whole) : severity === 'warning' ? warning(whole) : whole),
        );
      }
    }
    const hurting = found.filter(
      ({ severity }) => severity === 'error' || (given.flags.strict && severity === 'warning'),
    );
    if (!given.flags.json && found.length === 0) terminal.out(`${file}: nothing to complain about.`);
    return hurting.length > 0 ? 1 : 0;
  },
};

function findingsIn(text: string, file: string, given: Given): Placed[] {
  const method = methodOf(given);
  const p999Ms = msOf(given, 'p999');
  const only = textOf(given, 'policy');
  let policyAt = (_path: string): string | null => null;
  try {
    const source = readDocument(text, file);
    policyAt = (path) => policyIn(source.data, path);
    const policies = parsePolicies(text, file);
    if (only !== undefined && !policies.has(only)) throw noPolicyIn(file, 'policy', only, policies.keys());
    const isMany = Object.hasOwn(source.data as object, 'policies');
    const chosen = [...policies].filter(([name]) => only === undefined || name === only);
    return chosen.flatMap(([name, spec]) =>
      lint(spec, { method, p999Ms }).map(({ rule, severity, path, found, sentence, fix }): Placed => {
        const { line, column } = source.problemAt(isMany ? `policies.${name}.${path}` : path, found);
        const message = `${isMany ? `${name}.` : ''}${path}: ${found}. ${sentence}`;
        return { policy: name, line, column, path, severity, rule, message, fix };
      }),
    );
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems.map(({ line, column, path, message }) => ({
      policy: policyAt(path),
      line,
      column,
      path,
      severity: 'error',
      rule: 'document',
      message: path === '' || message.startsWith(path) ? message : `${path}: ${message}`,
      fix: null,
    }));
  }
}

/** Throws a `UsageError` for an unknown method: the linter would take it for one that may be repeated. */
function methodOf(given: Given): string | undefined {
  const method = textOf(given, 'method')?.toUpperCase();
  if (method === undefined || METHODS.includes(method)) return method;
  const meant = didYouMean(method, METHODS).replace('; did', '. Did') || '.';
  throw new UsageError(`--method: expected an HTTP method such as POST, got "${given.flags.method}"${meant}`);
}

function policyIn(data: unknown, path: string): string | null {
  if (path === '') return null;
  const { policies, name } = Object(data) as { policies?: unknown; name?: unknown };
  if (policies === undefined) return typeof name === 'string' && name !== '' ? name : 'default';
  // A policy name may contain dots and may be the start of another name. So take the longest match.
  const around = Object.keys(Object(policies)).filter((each) => `${path}.`.startsWith(`policies.${each}.`));
  return around.sort((a, b) => b.length - a.length)[0] ?? null;
}

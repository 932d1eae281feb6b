import { parseArgs } from 'node:util';
import { OptionsError } from 'holdfast';
import { chaosControl } from './control.ts';
import { type ChaosProxy, chaosProxy } from './proxy.ts';
import type { ChaosSpec } from './spec.ts';

/** The environment of the command: what it reads and where it prints. Tests replace it. */
export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>;
  out(line: string): void;
  err(line: string): void;
  readFile(path: string): Promise<string>;
  /** Resolves when the process receives a termination signal. */
  readonly ended: Promise<void>;
}

const flags = {
  upstream: { value: 'host:port', says: 'the server to stand in front of (needed)' },
  listen: { value: 'host:port', says: 'where clients connect; 127.0.0.1 and a free port unless given' },
  control: {
    value: 'host:port',
    says: 'where the control API answers; 127.0.0.1 and a free port unless given',
  },
  spec: { value: 'file', says: 'the document of faults, JSON; none unless given' },
  seed: { value: 'text', says: "the seed of chance; the document's unless given" },
  token: { value: 'text', says: 'what the control API asks for; better said in HOLDFAST_CHAOS_TOKEN' },
  json: { says: 'print the addresses as one line of JSON' },
  help: { says: 'print this' },
} as const;

type Values = Partial<Record<keyof typeof flags, string | boolean>>;

/** Thrown if a flag or its value is wrong. In this case the exit code is 2. */
class UsageError extends Error {}

/**
 * Runs the command `holdfast-chaos` until `ended` resolves. Resolves with the exit code: 0 normal end, 2
 * wrong usage, 3 the command could not start.
 */
export async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  let closing: (() => Promise<void>)[] = [];
  try {
    const values = readFlags(args);
    if (values.help) {
      terminal.out(help());
      return 0;
    }
    if (values.upstream === undefined) throw new UsageError('--upstream is needed: say "host:port".');
    const proxy = await startProxy(values, terminal);
    closing = [() => proxy.close()];
    const token = text(values.token) ?? terminal.env.HOLDFAST_CHAOS_TOKEN;
    const control = await chaosControl(proxy, { listen: text(values.control), token });
    closing.unshift(() => control.close());

    const { listen, upstream } = proxy.state();
    terminal.out(
      values.json
        ? JSON.stringify({ listen, upstream, control: control.address })
        : `listening on ${listen} for ${upstream}; control on http://${control.address}`,
    );
    await terminal.ended;
    return 0;
  } catch (error) {
    if (error instanceof UsageError || error instanceof OptionsError) {
      terminal.err(`holdfast-chaos: ${asFlag(error)}`);
      return 2;
    }
    terminal.err(`holdfast-chaos: ${(error as Error).message}`);
    return 3;
  } finally {
    for (const close of closing) await close();
  }
}

async function startProxy(values: Values, terminal: Terminal): Promise<ChaosProxy> {
  return chaosProxy({
    upstream: text(values.upstream) ?? '',
    listen: text(values.listen),
    seed: text(values.seed),
    spec: values.spec === undefined ? undefined : await readSpec(text(values.spec) ?? '', terminal),
  });
}

async function readSpec(path: string, terminal: Terminal): Promise<ChaosSpec> {
  let content: string;
  try {
    content = await terminal.readFile(path);
  } catch (error) {
    throw new UsageError(`--spec ${path} cannot be read: ${(error as Error).message}`);
  }
  try {
    return JSON.parse(content);
  } catch (error) {
    throw new UsageError(`--spec ${path} is not JSON: ${(error as Error).message}`);
  }
}

function readFlags(args: readonly string[]): Values {
  const options = Object.fromEntries(
    Object.entries(flags).map(([name, flag]) => [
      name,
      { type: 'value' in flag ? ('string' as const) : ('boolean' as const) },
    ]),
  );
  const { values, tokens } = parseArgs({
    args: [...args],
    options,
    strict: false,
    tokens: true,
  });
  for (const token of tokens) {
    if (token.kind === 'positional') throw new UsageError(`"${token.value}" is not a flag; try --help.`);
    if (token.kind !== 'option') continue;
    if (!Object.hasOwn(flags, token.name)) {
      throw new UsageError(`${token.rawName} is not a flag; try --help.`);
    }
    const flag = flags[token.name as keyof typeof flags];
    if ('value' in flag && (token.value ?? '') === '') {
      throw new UsageError(`${token.rawName} needs a value, ${flag.value}.`);
    }
    if (!('value' in flag) && token.value !== undefined) {
      throw new UsageError(`${token.rawName} takes no value, got "${token.value}".`);
    }
  }
  return values as Values;
}

/**
 * Returns the error message with the name of the wrong flag. An option that belongs to no flag comes from the
 * file of `--spec`.
 */
function asFlag(error: UsageError | OptionsError): string {
  if (!(error instanceof OptionsError)) return error.message;
  return ['upstream', 'listen', 'control', 'token', 'spec'].includes(error.path)
    ? `--${error.message}.`
    : `--spec: ${error.message}.`;
}

function text(value: string | boolean | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function help(): string {
  const lines = Object.entries(flags).map(([name, flag]) => {
    const shown = 'value' in flag ? `--${name} <${flag.value}>` : `--${name}`;
    return `  ${shown.padEnd(24)}${flag.says}`;
  });
  return [
    'holdfast-chaos: a TCP proxy that fails on purpose',
    '',
    '  holdfast-chaos --upstream 127.0.0.1:5432 --listen 127.0.0.1:6432 --spec faults.json',
    '',
    ...lines,
    '',
    'It runs until SIGINT or SIGTERM. Exit codes: 0 ended, 2 a flag or a document is wrong, 3 it could not listen.',
  ].join('\n');
}

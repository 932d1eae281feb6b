import type { Command } from '../command.ts';
import { UsageError } from '../command.ts';
import {
  checkBroker,
  checkFile,
  checkNode,
  checkPort,
  checkStore,
  type DoctorCheck,
} from '../doctor-checks.ts';
import { textOf } from '../given-values.ts';
import { bad, dim, good, type StyledPiece, StyledText } from '../styled-text.ts';
import { commandLine } from '../suggested-command.ts';
import { wrapped } from '../text-width.ts';

export const doctor: Command = {
  name: 'doctor',
  summary: 'what is wrong with this machine, a store, brokers, ports or files, and what to do',
  operands: '[policies.yaml or gateway.yaml…]',
  flags: {
    store: { value: 'file or URL', says: 'a store that should work; HOLDFAST_STORE unless given' },
    broker: {
      value: 'URL',
      many: true,
      says: 'a server that should answer: kafka://, amqp://, nats://, redis://, http://',
    },
    port: { value: 'port', many: true, says: 'a port that should be free, such as 7070 for the console' },
  },
  examples: ['doctor', 'doctor --store orders.db --broker amqp://localhost --port 7070 gateway.yaml'],
  async run(given, terminal) {
    const ports = (given.lists.port ?? []).map((text) => {
      const port = Number(text);
      if (Number.isInteger(port) && port > 0 && port < 65_536) return port;
      throw new UsageError(`--port: expected a number from 1 to 65535, got "${text}".`);
    });
    const store = textOf(given, 'store') ?? terminal.env.HOLDFAST_STORE;
    const checks: DoctorCheck[] = [checkNode(process.version)];
    const suggested = (words: string) => commandLine(words, given, terminal);
    if (store !== undefined) checks.push(...(await checkStore(store, suggested)));
    for (const url of given.lists.broker ?? []) checks.push(await checkBroker(url));
    for (const port of ports) checks.push(await checkPort(port));
    for (const file of given.operands) checks.push(await checkFile(file, terminal.env));
    if (given.flags.json) for (const check of checks) terminal.out(JSON.stringify(check));
    else terminal.out(textOfChecks(checks, terminal.columns));
    if (checks.some(({ isUnread }) => isUnread)) return 3;
    return checks.every(({ state }) => state !== 'bad') ? 0 : 1;
  },
};

const marks = { good: good('ok  '), bad: bad('BAD '), unsure: dim('?   ') } as const;

function textOfChecks(checks: readonly DoctorCheck[], columns: number | undefined): StyledText {
  const lines = checks.flatMap(({ name, state, says, fix }): (string | StyledPiece)[][] => {
    const [first = '', ...rest] =
      columns === undefined ? [`${name}: ${says}`] : wrapped(`${name}: ${says}`, columns - 6);
    const advice = fix === undefined ? [] : columns === undefined ? [fix] : wrapped(fix, columns - 8);
    return [
      [marks[state], ` ${first}`],
      ...rest.map((line) => [`     ${line}`]),
      ...advice.map((line) => [`     → ${line}`]),
    ];
  });
  return new StyledText(lines.flatMap((line, index) => (index === 0 ? line : ['\n', ...line])));
}

import { ConfigError } from '@holdfast/config';
import type { EnvoyLoss, GatewayExplanation } from '@holdfast/gateway';
import type { Command } from '../command.ts';
import { assertGatewayFile } from '../gateway-file.ts';
import { dataPlaneFlag, dataPlaneOf, lossLines } from '../gateway-losses.ts';
import { onlyOperand } from '../given-values.ts';
import { bad, styled } from '../styled-text.ts';
import type { Terminal } from '../terminal.ts';
import { wrapText } from '../text-width.ts';

export const gatewayCheck: Command = {
  name: 'gateway check',
  summary: 'what a gateway file does, route by route, and what is wrong with it, with line and column',
  operands: '<gateway.yaml>',
  flags: {
    ...dataPlaneFlag,
    strict: { says: 'warnings, and what Envoy misses, are as bad as errors' },
  },
  examples: ['gateway check gateway.yaml', 'gateway check gateway.yaml --data-plane envoy --strict'],
  async run(given, terminal) {
    const file = onlyOperand(given, 'a gateway file');
    const dataPlane = dataPlaneOf(given);
    await assertGatewayFile(file);
    const { envoyLosses, explainGateway, readGatewayFile } = await import('@holdfast/gateway');
    let explanation: GatewayExplanation;
    let losses: readonly EnvoyLoss[];
    try {
      const config = readGatewayFile(file, { environment: terminal.env });
      explanation = explainGateway(config);
      losses = dataPlane === 'envoy' ? envoyLosses(config) : [];
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      return reportMistakes(error, given.flags.json === true, terminal);
    }
    const { routes, findings } = explanation;
    if (given.flags.json)
      terminal.out(JSON.stringify({ file, ok: true, dataPlane, routes, findings, losses }, withoutInfinity));
    else {
      terminal.out(fitted(`${explanation}`, terminal.columns));
      if (dataPlane === 'envoy') {
        terminal.out(losses.length === 0 ? '\nEnvoy does all of it.' : '\nOn Envoy');
        for (const line of lossLines(losses, terminal.columns)) terminal.out(line);
      }
    }
    const hurting = findings.some(
      ({ severity }) => severity === 'error' || (given.flags.strict && severity === 'warning'),
    );
    const isMissed = given.flags.strict && losses.some(({ kind }) => kind === 'missing');
    return hurting || isMissed ? 1 : 0;
  },
};

function reportMistakes({ file, problems }: ConfigError, isJson: boolean, terminal: Terminal): number {
  if (isJson) terminal.out(JSON.stringify({ file, ok: false, problems }));
  else
    for (const { line, column, path, message } of problems) {
      const text = path === '' || message.startsWith(path) ? message : `${path}: ${message}`;
      terminal.out(styled(bad(wrapText(`${file}:${line}:${column}: ${text}`, terminal.columns, 2))));
    }
  return 1;
}

function fitted(text: string, columns: number | undefined): string {
  return text
    .split('\n')
    .map((line) => wrapText(line, columns, 2))
    .join('\n');
}

/** A replacer for `JSON.stringify`, because JSON has no Infinity. */
function withoutInfinity(_key: string, value: unknown): unknown {
  return value === Infinity ? 'unlimited' : value;
}

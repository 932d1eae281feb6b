import path from 'node:path';
import { systemClock } from 'holdfast';
import { type Command, UsageError } from '../command.ts';
import { assertGatewayFile } from '../gateway-file.ts';
import { lossLines } from '../gateway-losses.ts';
import { countOf, onlyOperand, textOf } from '../given-values.ts';

export const gatewayExport: Command = {
  name: 'gateway export',
  summary: 'write a gateway file as the configuration of Envoy, and say what Envoy cannot do of it',
  operands: '<gateway.yaml>',
  flags: {
    to: { value: 'envoy', says: 'whose configuration' },
    out: { value: 'folder', says: 'where to write the files; Envoy reads them from there' },
    'admin-port': { value: 'port', says: 'of Envoy’s own admin interface, on loopback; 9902 unless given' },
  },
  examples: ['gateway export gateway.yaml --to envoy --out ./envoy'],
  async run(given, terminal) {
    const file = onlyOperand(given, 'a gateway file');
    const to = textOf(given, 'to') ?? 'envoy';
    if (to !== 'envoy') throw new UsageError(`--to: expected envoy, got "${to}".`);
    const out = textOf(given, 'out');
    if (out === undefined) throw new UsageError('where to? Say --out <folder>.');
    const adminPort = countOf(given, 'admin-port', 0) ?? 9902;
    await assertGatewayFile(file);
    const { envoyConfiguration, envoyLosses, readGatewayFile, writeEnvoyFiles } = await import(
      '@holdfast/gateway'
    );
    const config = readGatewayFile(file, { environment: terminal.env });
    const folder = path.resolve(out);
    await writeEnvoyFiles(
      folder,
      envoyConfiguration(config, { folder, adminPort }),
      String(systemClock.epochMs()),
    );
    const losses = envoyLosses(config);
    if (given.flags.json) terminal.out(JSON.stringify({ file, folder, losses }));
    else {
      terminal.out(`The files are in ${folder}: envoy --config-path ${path.join(folder, 'bootstrap.json')}`);
      for (const line of lossLines(losses, terminal.columns)) terminal.out(line);
    }
    return 0;
  },
};

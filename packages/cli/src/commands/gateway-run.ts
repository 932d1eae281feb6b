import type { Gateway, ReloadResult } from '@holdfast/gateway';
import type { Command } from '../command.ts';
import { dataPlaneFlag, dataPlaneOf, lossLines } from '../gateway-losses.ts';
import { countOf, onlyOperand, textOf } from '../given-values.ts';
import type { Terminal } from '../terminal.ts';

export const gatewayRun: Command = {
  name: 'gateway',
  summary: 'run a gateway from its file until SIGTERM or Ctrl-C; SIGHUP or a change of the file reloads it',
  operands: '<gateway.yaml>',
  flags: {
    ...dataPlaneFlag,
    workers: {
      value: 'count',
      says: 'the number of processes, or of threads of Envoy; that of the file unless given',
    },
    envoy: { value: 'program', says: 'the Envoy to start; HOLDFAST_ENVOY or "envoy" unless given' },
    'envoy-admin': {
      value: 'URL',
      says: 'take over an Envoy that runs, by its admin interface; with --envoy-files',
    },
    'envoy-files': { value: 'folder', says: 'where the files of Envoy are; a temporary folder unless given' },
  },
  examples: [
    'gateway gateway.yaml',
    'gateway gateway.yaml --workers 4',
    'gateway gateway.yaml --data-plane envoy',
  ],
  async run(given, terminal) {
    const file = onlyOperand(given, 'a gateway file');
    const dataPlane = dataPlaneOf(given);
    const workers = countOf(given, 'workers', 1);
    const { envoyLosses, startGateway } = await import('@holdfast/gateway');
    const report = (result: ReloadResult) => reportReload(result, given.flags.json === true, terminal);
    const gateway = await startGateway(file, {
      dataPlane,
      ...(workers !== undefined && { workers }),
      ...(dataPlane === 'envoy' && {
        envoy: {
          program: textOf(given, 'envoy') ?? terminal.env.HOLDFAST_ENVOY,
          adminUrl: textOf(given, 'envoy-admin'),
          folder: textOf(given, 'envoy-files'),
        },
      }),
      environment: terminal.env,
      watch: true,
      signals: true,
      onReload: report,
    });
    if (dataPlane === 'envoy')
      for (const line of lossLines(envoyLosses(gateway.config), undefined)) terminal.err(`${line}`);
    announce(gateway, dataPlane, given.flags.json === true, terminal);
    if (!terminal.signal.aborted)
      await new Promise<void>((resolve) => {
        terminal.signal.addEventListener('abort', () => resolve(), { once: true });
      });
    await gateway.close();
    return 0;
  },
};

function announce(gateway: Gateway, dataPlane: string, isJson: boolean, terminal: Terminal): void {
  const { address, adminAddress, adminToken, config } = gateway;
  const at = `${config.listen.tls ? 'https' : 'http'}://${hostOf(address.address)}:${address.port}`;
  const admin = adminAddress && `http://${hostOf(adminAddress.address)}:${adminAddress.port}`;
  // If the file has no admin token, the gateway generates one. Print it here, because it is not shown again.
  const token = config.admin?.token === undefined ? adminToken : undefined;
  if (isJson) {
    terminal.out(
      JSON.stringify({ event: 'listening', url: at, admin: admin ?? null, token: token ?? null, dataPlane }),
    );
    return;
  }
  terminal.out(`The gateway listens on ${at}${dataPlane === 'envoy' ? ', on Envoy' : ''}.`);
  if (admin)
    terminal.out(`The admin API is on ${admin}${token === undefined ? '' : `, with the token ${token}`}.`);
}

function reportReload(result: ReloadResult, isJson: boolean, terminal: Terminal): void {
  if (isJson) terminal.out(JSON.stringify({ event: 'reload', ...result }));
  else if (result.ok) terminal.out('Reloaded.');
  else terminal.err(`Not reloaded, the file from before stays in force: ${result.error}`);
}

function hostOf(address: string): string {
  return address.includes(':') ? `[${address}]` : address;
}

import type { Gateway, LostWorker, ReloadResult } from '@holdfast/gateway';
import { systemClock } from 'holdfast';
import type { Command } from '../command.ts';
import { assertGatewayFile } from '../gateway-file.ts';
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
    await assertGatewayFile(file);
    const { envoyLosses, startGateway } = await import('@holdfast/gateway');
    const log = logOf(given.flags.json === true, terminal);
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
      onReload: (result) => logReload(result, log),
      onWorkerLost: (lost) => logLoss(lost, dataPlane, log),
    });
    if (dataPlane === 'envoy')
      for (const line of lossLines(envoyLosses(gateway.config), undefined)) terminal.err(`${line}`);
    announce(gateway, dataPlane, log);
    if (!terminal.signal.aborted)
      await new Promise<void>((resolve) => {
        terminal.signal.addEventListener('abort', () => resolve(), { once: true });
      });
    await gateway.close();
    return 0;
  },
};

/** Prints an event: one sentence a line, or with `--json` an object. All but the sentences of the start have the time. */
type Log = (event: LogEvent, ...says: readonly string[]) => void;

interface LogEvent {
  readonly event: 'listening' | 'reload' | 'worker-lost';
  readonly ok?: boolean;
}

function logOf(isJson: boolean, terminal: Terminal): Log {
  return (event, ...says) => {
    const time = new Date(systemClock.epochMs()).toISOString();
    if (isJson) terminal.out(JSON.stringify({ ...event, time }));
    else
      for (const each of says) {
        if (event.event === 'listening') terminal.out(each);
        else if (event.event === 'worker-lost' || event.ok === false) terminal.err(`${time} ${each}`);
        else terminal.out(`${time} ${each}`);
      }
  };
}

function announce(gateway: Gateway, dataPlane: string, log: Log): void {
  const { address, adminAddress, adminToken, config } = gateway;
  const url = `${config.listen.tls ? 'https' : 'http'}://${hostOf(address.address)}:${address.port}`;
  const admin = adminAddress && `http://${hostOf(adminAddress.address)}:${adminAddress.port}`;
  // If the file has no admin token, the gateway generates one. Print it here, because it is not shown again.
  const token = config.admin?.token === undefined ? adminToken : undefined;
  const event = { event: 'listening' as const, url, admin: admin ?? null, token: token ?? null, dataPlane };
  const says = [`The gateway listens on ${url}${dataPlane === 'envoy' ? ', on Envoy' : ''}.`];
  if (admin)
    says.push(`The admin API is on ${admin}${token === undefined ? '' : `, with the token ${token}`}.`);
  log(event, ...says);
}

function logReload(result: ReloadResult, log: Log): void {
  const { ok, isChanged, files, error } = result;
  const done = isChanged
    ? `Reloaded ${files.join(', ')}.`
    : 'Nothing to reload: the files say the same as before.';
  log(
    { event: 'reload', ...result },
    ok ? done : `Not reloaded, the file from before stays in force: ${error}`,
  );
}

function logLoss(lost: LostWorker, dataPlane: string, log: Log): void {
  const { pid, code, signal } = lost;
  const what = dataPlane === 'envoy' ? 'Envoy' : 'A worker';
  log(
    { event: 'worker-lost', ...lost },
    `${what} (process ${pid}) ended with ${signal ?? `code ${code}`}; another one replaces it.`,
  );
}

function hostOf(address: string): string {
  return address.includes(':') ? `[${address}]` : address;
}

import type { ReloadResult } from '@holdfast/gateway';
import type { Command } from '../command.ts';
import { adminFlags, askGateway } from '../gateway-admin.ts';

export const gatewayReload: Command = {
  name: 'gateway reload',
  summary:
    'let a gateway read its file again; a file with a mistake changes nothing, and is told with its place',
  flags: adminFlags,
  examples: ['gateway reload'],
  async run(given, terminal) {
    const { body } = await askGateway(given, terminal, 'POST', '/reload');
    const { ok, files, error, problems = [] } = body as ReloadResult;
    if (given.flags.json) terminal.out(JSON.stringify(body));
    else if (ok) terminal.out(`Reloaded ${files.join(', ')}.`);
    else {
      terminal.err('Not reloaded: the file from before stays in force.');
      for (const { file, line, column, path, message } of problems)
        terminal.err(
          `${file}:${line}:${column}: ${path === '' || message.startsWith(path) ? '' : `${path}: `}${message}`,
        );
      if (problems.length === 0) terminal.err(`${error}`);
    }
    return ok ? 0 : 1;
  },
};

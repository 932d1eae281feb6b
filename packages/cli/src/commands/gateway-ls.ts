import type { Command } from '../command.ts';
import { adminFlags, askGateway } from '../gateway-admin.ts';
import { bad, good, warning } from '../styled-text.ts';
import { type Cell, table } from '../table.ts';

interface Instance {
  readonly name: string;
  readonly isHealthy: boolean;
  readonly isDraining: boolean;
  readonly isEjected: boolean;
  readonly inFlight: number;
  readonly breaker: string | null;
  readonly forced: string | null;
  readonly lastCheckError: string | null;
}

interface State {
  readonly isDraining: boolean;
  readonly workers: readonly {
    readonly pid: number;
    readonly upstreams: readonly { readonly name: string; readonly instances: readonly Instance[] }[];
  }[];
}

export const gatewayLs: Command = {
  name: 'gateway ls',
  summary: 'upstreams and instances of a gateway that runs, with health and breakers, in every worker',
  flags: adminFlags,
  examples: ['gateway ls', 'gateway ls --admin http://127.0.0.1:9901 --json'],
  async run(given, terminal) {
    const { body } = await askGateway(given, terminal, 'GET', '/state');
    const { workers } = body as State;
    const rows = workers.flatMap(({ pid, upstreams }) =>
      upstreams.flatMap(({ name: upstream, instances }) =>
        instances.map((instance) => ({ pid, upstream, ...instance })),
      ),
    );
    if (given.flags.json) for (const row of rows) terminal.out(JSON.stringify(row));
    else {
      const cells = rows.map((row): Cell[] => [
        row.upstream,
        row.name,
        String(row.pid),
        stateOf(row),
        row.breaker === null ? '' : breakerCell(row),
        String(row.inFlight),
        row.lastCheckError ?? '',
      ]);
      const headings = [
        'upstream',
        { heading: 'instance', whole: true as const },
        { heading: 'process', align: 'right' as const },
        'state',
        'breaker',
        { heading: 'in flight', align: 'right' as const },
        { heading: 'last check', below: true as const },
      ];
      terminal.out(table(headings, cells, terminal.columns));
    }
    return rows.some(({ isHealthy, isEjected, breaker }) => !isHealthy || isEjected || breaker === 'open')
      ? 1
      : 0;
  },
};

function stateOf({ isHealthy, isDraining, isEjected }: Instance): Cell {
  if (!isHealthy) return bad('unhealthy');
  if (isEjected) return bad('ejected');
  return isDraining ? warning('draining') : good('healthy');
}

function breakerCell({ breaker, forced }: Instance): Cell {
  const text = `${breaker}${forced === null ? '' : ' (forced)'}`;
  return breaker === 'open' ? bad(text) : text;
}

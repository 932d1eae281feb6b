import type { Command } from '../command.ts';
import { adminFlags, askGateway } from '../gateway-admin.ts';
import { onlyOperand } from '../given-values.ts';
import { wrapText } from '../text-width.ts';

export const gatewayRequest: Command = {
  name: 'gateway request',
  summary: 'why was this request retried, or why did it fail? By the x-request-id of its response',
  operands: '<id>',
  flags: adminFlags,
  examples: ['gateway request 5f0c1b2a-77'],
  async run(given, terminal) {
    const id = onlyOperand(given, 'the id of a request');
    const { status, body } = await askGateway(given, terminal, 'GET', `/stories/${encodeURIComponent(id)}`);
    if (given.flags.json) terminal.out(JSON.stringify(body));
    else if (status === 200) terminal.out(wrapText(tell(body), terminal.columns, 2));
    else
      terminal.err(
        `No worker has a story of ${id}: only retried and failed requests have one, and the oldest are forgotten.`,
      );
    return status === 200 ? 0 : 1;
  },
};

function tell(story: {
  method?: string;
  path?: string;
  route?: string;
  status?: number;
  says?: string;
}): string {
  const { method = '', path = '', route = '', status = '', says = '' } = story;
  return `${method} ${path} (route ${route}) ended with ${status}.\n${says}`.trim();
}

import { type Command, UsageError } from '../command.ts';
import { adminFlags, askGateway } from '../gateway-admin.ts';
import { textOf } from '../given-values.ts';

const states = ['open', 'closed', 'auto'];

export const gatewayForce: Command = {
  name: 'gateway force',
  summary: 'keep the breakers of an upstream or a policy open or closed; "auto" ends it',
  operands: '<upstream> <open|closed|auto>',
  flags: {
    ...adminFlags,
    target: { value: 'instance', says: 'only the breaker of this instance; all unless given' },
    why: { value: 'text', says: 'for those who find it open' },
  },
  examples: ["gateway force orders open --target http://10.0.0.1:3000 --why 'maintenance'"],
  async run(given, terminal) {
    const [policy, state = '', ...more] = given.operands;
    if (policy === undefined || more.length > 0)
      throw new UsageError(
        `the name of an upstream or a policy and one of ${states.join(', ')} are needed, and no more.`,
      );
    if (!states.includes(state))
      throw new UsageError(`expected one of ${states.join(', ')}, got "${state}".`);
    const target = textOf(given, 'target');
    const because = textOf(given, 'why');
    const { status, body } = await askGateway(given, terminal, 'POST', '/breakers', {
      policy,
      state,
      ...(target !== undefined && { target }),
      ...(because !== undefined && { because }),
    });
    if (given.flags.json) terminal.out(JSON.stringify(body));
    else if (status === 200)
      terminal.out(`${body.breakers} ${body.breakers === 1 ? 'breaker' : 'breakers'}: ${state}.`);
    else terminal.err(`${body.error}`.replace(/[^.?]$/, '$&.'));
    return status === 200 ? 0 : 1;
  },
};

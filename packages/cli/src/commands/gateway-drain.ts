import { type Command, UsageError } from '../command.ts';
import { adminFlags, askGateway } from '../gateway-admin.ts';

export const gatewayDrain: Command = {
  name: 'gateway drain',
  summary: 'send no new requests to an instance; those in flight end. --resume: send them again',
  operands: '<upstream> <instance>',
  flags: { ...adminFlags, resume: { says: 'the instance gets requests again' } },
  examples: [
    'gateway drain orders http://10.0.0.1:3000',
    'gateway drain orders http://10.0.0.1:3000 --resume',
  ],
  async run(given, terminal) {
    const [upstream, instance, ...more] = given.operands;
    if (upstream === undefined || instance === undefined || more.length > 0)
      throw new UsageError('an upstream and one of its instances are needed, and no more.');
    const act = given.flags.resume ? 'resume' : 'drain';
    const path = `/upstreams/${encodeURIComponent(upstream)}/instances/${encodeURIComponent(instance)}/${act}`;
    const { status, body } = await askGateway(given, terminal, 'POST', path);
    if (given.flags.json) terminal.out(JSON.stringify(body));
    else if (status === 200)
      terminal.out(
        act === 'resume'
          ? `${instance} gets requests again.`
          : body.serving === 0
            ? `${instance} gets no new requests. It was the last one: ${upstream} answers with 503 now.`
            : `${instance} gets no new requests.`,
      );
    else
      terminal.err(`The upstream ${upstream} has no instance ${instance}; "holdfast gateway ls" lists them.`);
    return status === 200 ? 0 : 1;
  },
};

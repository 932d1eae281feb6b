import type { SQSClient } from '@aws-sdk/client-sqs';

type Input = Record<string, unknown> & { readonly Entries?: readonly Record<string, unknown>[] };
type Answer = (input: Input) => unknown;

/**
 * A client that answers as it is told, for what ElasticMQ does not do: limits of Amazon's SQS, missing rights, failures of single
 * entries. What is not told succeeds.
 */
export function fakeSqs(answers: Readonly<Record<string, Answer>> = {}): {
  readonly client: SQSClient;
  readonly sent: { readonly name: string; readonly input: Input }[];
  inputs(name: string): Input[];
} {
  const sent: { name: string; input: Input }[] = [];
  const send = async (
    command: { readonly input: Input },
    { abortSignal }: { abortSignal?: AbortSignal } = {},
  ) => {
    const name = command.constructor.name.replace(/Command$/, '');
    sent.push({ name, input: command.input });
    const answer = answers[name]?.(command.input) ?? {};
    if (answer !== 'waits')
      return name === 'GetQueueUrl' ? { QueueUrl: `url/${command.input.QueueName}` } : answer;
    return new Promise((_, reject) =>
      abortSignal?.addEventListener('abort', () => reject(abortSignal.reason)),
    );
  };
  const client = { send, destroy() {} } as unknown as SQSClient;
  return {
    client,
    sent,
    inputs: (name) => sent.filter((each) => each.name === name).map(({ input }) => input),
  };
}

/** An error as the AWS client throws it. */
export function awsError(name: string, message: string): Error {
  return Object.assign(new Error(message), { name });
}

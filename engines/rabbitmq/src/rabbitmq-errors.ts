import { HoldfastError } from 'holdfast';

/** The server did not answer, refused a request, or takes no messages because it is short of memory or disk. */
export class RabbitmqError extends HoldfastError {
  constructor(code: 'UNANSWERED' | 'REFUSED' | 'BLOCKED', message: string, options?: ErrorOptions) {
    super(`HOLDFAST_RABBITMQ_${code}`, message, options);
  }
}

/** The reply codes of AMQP that we tell apart. */
export const replies = { accessRefused: 403, notFound: 404, locked: 405, otherArguments: 406 } as const;

/** The reply code with which the server closed a channel, if it did. */
export function replyOf(error: unknown): number | undefined {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === 'number' ? code : undefined;
}

/** What the server itself said, without the words of the client around it. */
export function saidBy(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return /with message "(?:[A-Z_]+ - )?(.*)"$/s.exec(message)?.[1] ?? message;
}

import { HoldfastError } from 'holdfast';

/**
 * The server did not answer, refused a request, or accepts no messages because it is short of memory or disk.
 */
export class RabbitmqError extends HoldfastError {
  constructor(code: 'UNANSWERED' | 'REFUSED' | 'BLOCKED', message: string, options?: ErrorOptions) {
    super(`HOLDFAST_RABBITMQ_${code}`, message, options);
  }
}

/** The AMQP reply codes that our code checks for. */
export const replies = { accessRefused: 403, notFound: 404, locked: 405, otherArguments: 406 } as const;

/** The reply code with which the server closed a channel; `undefined` for any other error. */
export function replyOf(error: unknown): number | undefined {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === 'number' ? code : undefined;
}

/** The text of the server's error, without the text that the client library adds. */
export function saidBy(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return /with message "(?:[A-Z_]+ - )?(.*)"$/s.exec(message)?.[1] ?? message;
}

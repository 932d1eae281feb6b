import { HoldfastError } from 'holdfast';

/**
 * SQS refused a request, or a limit of SQS was reached. `cause` is the error of the AWS client, if there is
 * one.
 */
export class SqsError extends HoldfastError {
  constructor(code: 'REFUSED' | 'IN_FLIGHT_FULL' | 'HELD_TOO_LONG', message: string, cause?: unknown) {
    super(`HOLDFAST_SQS_${code}`, message, cause === undefined ? undefined : { cause });
  }
}

/** The name of an error of the AWS client, such as `QueueDoesNotExist`. */
export function awsErrorName(error: unknown): string {
  return error instanceof Error ? error.name : '';
}

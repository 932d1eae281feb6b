import { HoldfastError } from 'holdfast';

/** The server did not answer, or refused a request. */
export class NatsError extends HoldfastError {
  constructor(code: 'UNANSWERED' | 'REFUSED', message: string) {
    super(`HOLDFAST_NATS_${code}`, message);
  }
}

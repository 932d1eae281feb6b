import type { Act } from '@holdfast/contracts';
import type { AnswerOf, CheckedQuestion, RouteName } from '../api/routes.ts';
import type { Session } from './sessions.ts';

export interface HandlerContext {
  readonly session: Session;
  readonly request: Request;
  /** The IP address of the client. Wrong tokens are limited per address. */
  readonly address: string;
  /**
   * A request that changes something is executed once, even if it is repeated with the same
   * `Idempotency-Key`.
   */
  readonly idempotencyKey: string | undefined;
  /** Returns this reason with the name of the signed-in user, for the audit log. */
  act(why: string | undefined): Act;
}

/** Returns the body of the answer, or a complete response. */
export type Handler<Name extends RouteName> = (
  question: CheckedQuestion<Name>,
  context: HandlerContext,
) => Promise<AnswerOf<Name> | Response> | AnswerOf<Name> | Response;

export type Handlers<Name extends RouteName = RouteName> = { readonly [Each in Name]: Handler<Each> };

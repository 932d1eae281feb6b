import type { Act } from '@holdfast/contracts';
import type { AnswerOf, CheckedQuestion, RouteName } from '../api/routes.ts';
import type { Session } from './sessions.ts';

/** What a handler gets in addition to the checked request. */
export interface HandlerContext {
  readonly session: Session;
  readonly request: Request;
  /** The IP address of the client. Wrong tokens are limited per address. */
  readonly address: string;
  /** The header `Idempotency-Key`. An act that is repeated with the same key is executed once. */
  readonly idempotencyKey: string | undefined;
  /** Returns an act with this reason and the name of the signed-in user. */
  act(why: string | undefined): Act;
}

/** The handler of one route. It returns the body of the answer, or a complete response. */
export type Handler<Name extends RouteName> = (
  question: CheckedQuestion<Name>,
  context: HandlerContext,
) => Promise<AnswerOf<Name> | Response> | AnswerOf<Name> | Response;

export type Handlers<Name extends RouteName = RouteName> = { readonly [Each in Name]: Handler<Each> };

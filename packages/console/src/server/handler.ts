import type { Act } from '@holdfast/contracts';
import type { AnswerOf, CheckedQuestion, RouteName } from '../api/routes.ts';
import type { Session } from './sessions.ts';

/** What a handler knows beside the question. */
export interface HandlerContext {
  readonly session: Session;
  readonly request: Request;
  /** Where the request comes from, for the limit of wrong tokens. */
  readonly address: string;
  /** The header `Idempotency-Key`: the same act again is the first one. */
  readonly idempotencyKey: string | undefined;
  /** The act of the person who is signed in. */
  act(why: string | undefined): Act;
}

/** Answers one route: with the answer of its schema, or with a response of its own. */
export type Handler<Name extends RouteName> = (
  question: CheckedQuestion<Name>,
  context: HandlerContext,
) => Promise<AnswerOf<Name> | Response> | AnswerOf<Name> | Response;

export type Handlers<Name extends RouteName = RouteName> = { readonly [Each in Name]: Handler<Each> };

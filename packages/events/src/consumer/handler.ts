import type { HandlerResult } from './handler-result.ts';
import type { HandledEvent } from './task.ts';

// biome-ignore lint/suspicious/noConfusingVoidType: an async function that returns nothing gives a promise of void
type Given<Tx> = HandlerResult<Tx> | undefined | void;

/** Handles one event. What it throws is classified; what it returns, if anything, is a `HandlerResult`. */
export type Handler<T = unknown, Tx = unknown> = (
  event: HandledEvent<T>,
) => Given<Tx> | PromiseLike<Given<Tx>>;

import type { Answer } from './answer.ts';
import type { HandledEvent } from './task.ts';

/** Handles one event. What it throws is classified; what it returns, if anything, is an `Answer`. */
export type Handler<T = unknown, Tx = unknown> = (
  event: HandledEvent<T>,
) => Answer<Tx> | undefined | void | PromiseLike<Answer<Tx> | undefined> | PromiseLike<void>;

/** Which part of a list is wanted. */
export interface PageRequest {
  /** At most so many. */
  readonly limit: number;
  /** From the page before; absent: from the beginning. */
  readonly cursor?: string;
}

export interface Page<T> {
  readonly items: readonly T[];
  /** For the next page; `undefined`: this was the last. Opaque, and valid after a restart. */
  readonly cursor: string | undefined;
}

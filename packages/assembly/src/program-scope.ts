import { OptionsError } from 'holdfast';

/** A scope in which step names are counted: the program itself, or one branch of `all`, `each` or `race`. */
export class Scope {
  /** The path prefix of the steps in this scope: empty, or ending with a slash. */
  readonly prefix: string;
  readonly parent: Scope | undefined;
  /** Names of steps that are running. A second step with one of these names would be ambiguous. */
  readonly underWay = new Set<string>();
  readonly #occurrences = new Map<string, number>();
  #isClosed = false;
  /** The number of random numbers that this scope has used. */
  drawn = 0;

  constructor(prefix: string, parent?: Scope) {
    this.prefix = prefix;
    this.parent = parent;
  }

  get isClosed(): boolean {
    return this.#isClosed || (this.parent?.isClosed ?? false);
  }

  /** After this call no step of the scope begins, and the promises of its running steps never settle. */
  close(): void {
    this.#isClosed = true;
  }

  /** Returns the path of the next step with this name: `charge`, then `charge#2`. */
  nextPath(name: string): string {
    const occurrence = (this.#occurrences.get(name) ?? 0) + 1;
    this.#occurrences.set(name, occurrence);
    return `${this.prefix}${name}${occurrence > 1 ? `#${occurrence}` : ''}`;
  }
}

/**
 * Throws if `name` cannot be the name of a step. A name must not contain `/` (which separates the parts of a
 * path) or `#` (which comes before the occurrence), or begin with `~` (which marks records that are not steps
 * of the program).
 */
export function assertStepName(name: unknown): asserts name is string {
  if (typeof name !== 'string' || !/^[^/#~\0][^/#\0]{0,199}$/.test(name))
    throw new OptionsError('step', name, 'a name of up to 200 characters without / and #');
}

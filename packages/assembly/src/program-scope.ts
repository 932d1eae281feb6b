import { OptionsError } from 'holdfast';

/** A place for steps: the program itself, or a branch of `all`, `each` or `race`. Names are counted in each scope. */
export class Scope {
  /** The path before the names of its steps: empty, or with a slash at its end. */
  readonly prefix: string;
  readonly parent: Scope | undefined;
  /** Names that are under way, so that a second step of the same name would be ambiguous. */
  readonly underWay = new Set<string>();
  readonly #occurrences = new Map<string, number>();
  #isClosed = false;
  /** How many random numbers were drawn. */
  drawn = 0;

  constructor(prefix: string, parent?: Scope) {
    this.prefix = prefix;
    this.parent = parent;
  }

  get isClosed(): boolean {
    return this.#isClosed || (this.parent?.isClosed ?? false);
  }

  /** Nothing more begins in a closed scope, and nothing that was begun there answers. */
  close(): void {
    this.#isClosed = true;
  }

  /** The path of the next step of this name: `charge`, then `charge#2`. */
  nextPath(name: string): string {
    const occurrence = (this.#occurrences.get(name) ?? 0) + 1;
    this.#occurrences.set(name, occurrence);
    return `${this.prefix}${name}${occurrence > 1 ? `#${occurrence}` : ''}`;
  }
}

/** Slash and number sign structure paths, and a tilde begins what is not a step of the program. */
export function assertStepName(name: unknown): asserts name is string {
  if (typeof name !== 'string' || !/^[^/#~\0][^/#\0]{0,199}$/.test(name))
    throw new OptionsError('step', name, 'a name of up to 200 characters without / and #');
}

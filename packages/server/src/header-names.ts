/** Headers that are searched for in every request. Names are in lower case. */
export class HeaderNames {
  readonly #names: ReadonlySet<string>;
  /** A length that no name has rules out most headers at once. */
  readonly #hasLength: readonly boolean[];

  constructor(...names: readonly string[]) {
    this.#names = new Set(names);
    const longest = Math.max(...names.map(({ length }) => length));
    this.#hasLength = Array.from({ length: longest + 1 }, (_, length) =>
      names.some((name) => name.length === length),
    );
  }

  /** `name` may be in any case. */
  has(name: string): boolean {
    return this.#hasLength[name.length] === true && this.#names.has(name.toLowerCase());
  }
}

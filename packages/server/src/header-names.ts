/** A set of header names that is searched for in every request. The names are in lower case. */
export class HeaderNames {
  readonly #names: ReadonlySet<string>;
  /** For each length, whether a name has it. Most headers of a request are excluded by their length alone. */
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

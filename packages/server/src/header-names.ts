/** A set of header names in lower case, with fast lookups. */
export class HeaderNames {
  readonly #names: ReadonlySet<string>;
  /** `#hasLength[n]` is true if a name has n characters. This excludes most headers without a hash lookup. */
  readonly #hasLength: readonly boolean[];

  constructor(...names: readonly string[]) {
    this.#names = new Set(names);
    const longest = Math.max(...names.map(({ length }) => length));
    this.#hasLength = Array.from({ length: longest + 1 }, (_, length) =>
      names.some((name) => name.length === length),
    );
  }

  has(name: string): boolean {
    return this.#hasLength[name.length] === true && this.#names.has(name.toLowerCase());
  }
}

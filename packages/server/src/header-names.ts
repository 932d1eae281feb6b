/** Some headers that are looked for in every request. Names in lower case. */
export class HeaderNames {
  readonly #names: ReadonlySet<string>;
  /** Most names are told apart by their length alone. */
  readonly #hasLength: readonly boolean[];

  constructor(...names: readonly string[]) {
    this.#names = new Set(names);
    const longest = Math.max(...names.map(({ length }) => length));
    this.#hasLength = Array.from({ length: longest + 1 }, (_, length) =>
      names.some((name) => name.length === length),
    );
  }

  /** In whatever case it was sent. */
  has(name: string): boolean {
    return this.#hasLength[name.length] === true && this.#names.has(name.toLowerCase());
  }
}

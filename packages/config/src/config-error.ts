import { HoldfastError } from 'holdfast';

/** One mistake in a document. Lines and columns are counted from 1. */
export interface Problem {
  readonly line: number;
  readonly column: number;
  /** The path of the field, such as `policies.payments.backoff.base`; empty for the whole document. */
  readonly path: string;
  /** One sentence: what was expected and what was found. */
  readonly message: string;
}

/** A `ConfigError` lists at most this many mistakes. */
export const problemsMax = 100;

/** Thrown for a document with mistakes. It lists the first hundred mistakes, in the order of the text. */
export class ConfigError extends HoldfastError {
  declare readonly file: string;
  declare readonly problems: readonly Problem[];

  constructor(file: string, all: readonly Problem[]) {
    const problems = all.toSorted((a, b) => a.line - b.line || a.column - b.column).slice(0, problemsMax);
    const lines = problems.map(({ line, column, path, message }) => {
      const place = `${file}:${line}:${column}: `;
      return path === '' || message.startsWith(path) ? place + message : `${place}${path}: ${message}`;
    });
    super('HOLDFAST_CONFIG', lines.join('\n'));
    this.file = file;
    this.problems = problems;
  }
}

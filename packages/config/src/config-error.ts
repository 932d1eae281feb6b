import { HoldfastError } from 'holdfast';

/** One mistake in a document and its place. Lines and columns count from 1. */
export interface Problem {
  readonly line: number;
  readonly column: number;
  /** The field: `policies.payments.backoff.base`; empty for the document as a whole. */
  readonly path: string;
  /** One sentence with what was expected and what was found. */
  readonly message: string;
}

/** Thrown for a document with mistakes. The error lists all mistakes. */
export class ConfigError extends HoldfastError {
  declare readonly file: string;
  declare readonly problems: readonly Problem[];

  constructor(file: string, problems: readonly Problem[]) {
    const lines = problems.map(({ line, column, path, message }) => {
      const place = `${file}:${line}:${column}: `;
      return path === '' || message.startsWith(path) ? place + message : `${place}${path}: ${message}`;
    });
    super('HOLDFAST_CONFIG', lines.join('\n'));
    this.file = file;
    this.problems = problems;
  }
}

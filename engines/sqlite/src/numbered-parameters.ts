import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';

/**
 * Opens a database file. Node.js 22.19, and 24 before 24.7, cannot bind a parameter like `?1` twice. For
 * these versions, it returns a subclass of `DatabaseSync` that can.
 */
export function openDatabase(file: string, options: { timeout: number }): DatabaseSync {
  bindsNumbers ??= canBindNumbers();
  return new (bindsNumbers ? DatabaseSync : NumberingDatabase)(file, options);
}

let bindsNumbers: boolean | undefined;

function canBindNumbers(): boolean {
  const database = new DatabaseSync(':memory:');
  try {
    return database.prepare('SELECT ?1, ?2, ?1 AS again').get('first', 'second')?.again === 'first';
  } catch {
    return false;
  } finally {
    database.close();
  }
}

/** Replaces each numbered parameter by a plain `?`, and repeats its value for each use. */
export class NumberingDatabase extends DatabaseSync {
  override prepare(sql: string): StatementSync {
    if (!/\?\d/.test(sql)) return super.prepare(sql);
    const { text, numbers } = spreadOut(sql);
    const statement = super.prepare(text);
    for (const method of ['get', 'all', 'run', 'iterate'] as const) {
      const bind = statement[method].bind(statement) as unknown as (...values: SQLInputValue[]) => never;
      statement[method] = (...values: unknown[]) =>
        bind(...numbers.map((number) => values[number - 1] as SQLInputValue));
    }
    return statement;
  }
}

/**
 * Returns the text with plain `?`, and the parameter number of each. A bare `?` gets the next number, as in
 * SQLite.
 */
function spreadOut(sql: string): { text: string; numbers: number[] } {
  const numbers: number[] = [];
  let largest = 0;
  const text = sql.replace(/'[^']*'|"[^"]*"|--.*|\?(\d*)/g, (found, number?: string) => {
    if (number === undefined) return found;
    const own = number === '' ? largest + 1 : Number(number);
    largest = Math.max(largest, own);
    numbers.push(own);
    return '?';
  });
  return { text, numbers };
}

import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { NumberingDatabase, openDatabase } from '../src/numbered-parameters.ts';

const statements: [sql: string, ...values: string[]][] = [
  [`SELECT ?1 AS a, ?2 AS b, ?1 AS c`, 'first', 'second'],
  [`SELECT ?2 AS a, ?1 AS b`, 'first', 'second'],
  [`SELECT ?1 AS a, ? AS b, ?1 AS c, ? AS d`, 'first', 'second', 'third'],
  [`SELECT 'is ?1 quoted' AS "a?2", ?1 AS b -- and ?3 said aside`, 'first'],
  [`SELECT ? AS a, ? AS b`, 'first', 'second'],
];

test.each(statements)('%s means the same as to a Node that can bind it', (sql, ...values) => {
  const able = new DatabaseSync(':memory:').prepare(sql);
  const numbering = new NumberingDatabase(':memory:').prepare(sql);
  expect(numbering.get(...values)).toEqual(able.get(...values));
  expect(numbering.all(...values)).toEqual(able.all(...values));
  expect([...numbering.iterate(...values)]).toEqual([...able.iterate(...values)]);
});

test('what is written goes where it belongs', () => {
  const database = new NumberingDatabase(':memory:');
  database.exec('CREATE TABLE pair (one TEXT, other TEXT, again TEXT)');
  database.prepare('INSERT INTO pair VALUES (?2, ?1, ?2)').run('first', 'second');
  expect(database.prepare('SELECT * FROM pair').get()).toEqual({
    one: 'second',
    other: 'first',
    again: 'second',
  });
});

test('a Node that can is left alone', () => {
  const database = openDatabase(':memory:', { timeout: 0 });
  expect(database.prepare('SELECT ?1 AS a, ?1 AS b').get('x')).toEqual({ a: 'x', b: 'x' });
  expect(database).not.toBeInstanceOf(NumberingDatabase);
});

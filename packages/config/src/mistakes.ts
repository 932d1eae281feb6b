import { OptionsError } from 'holdfast';
import { type Field, isDocument, readTable, type Table, unknownField } from 'holdfast/fields';

/**
 * Returns all mistakes of a document: first unknown fields, then invalid fields in the order of the table.
 * Each field is checked alone, so conflicts between fields are not found here.
 */
export function* mistakesIn(table: Table, input: object, path = ''): Generator<OptionsError> {
  for (const [key, value] of Object.entries(input)) {
    if (!Object.hasOwn(table, key)) yield unknownField(table, key, value, path);
  }
  for (const [key, field] of Object.entries(table)) {
    const value = (input as Readonly<Record<string, unknown>>)[key] ?? undefined;
    if (value !== undefined) yield* mistakesOf(field, value, path + key);
    else if (field.default !== undefined) yield* mistakesOfWhole(field, field.default, path + key);
  }
}

/**
 * Returns the mistakes in the items of a list or the fields of an object. If there are none, checks the value
 * as a whole.
 */
function* mistakesOf(field: Field, value: unknown, path: string): Generator<OptionsError> {
  let areInside = false;
  for (const mistake of mistakesInside(field, value, path)) {
    areInside = true;
    yield mistake;
  }
  if (!areInside) yield* mistakesOfWhole(field, value, path);
}

function* mistakesOfWhole(field: Field, value: unknown, path: string): Generator<OptionsError> {
  const mistake = mistakeOf(() => readTable({ '': field }, { '': value }, path));
  if (mistake) yield mistake;
}

function* mistakesInside(field: Field, value: unknown, path: string): Generator<OptionsError> {
  const { kind, of = [] } = field;
  const [item] = of;
  if (item && kind.startsWith('a list')) {
    for (const [index, each] of [value].flat().entries()) yield* mistakesOf(item, each, `${path}[${index}]`);
  } else if (isDocument(value)) {
    const group = [field, ...of].find(({ fields }) => fields);
    if (item && kind.startsWith('a map'))
      for (const [name, each] of Object.entries(value)) yield* mistakesOf(item, each, `${path}.${name}`);
    else if (group?.fields) yield* mistakesIn(group.fields, value, `${path}.`);
  }
}

/** Returns the `OptionsError` that `read` throws, or undefined if it throws nothing. Other errors are thrown again. */
export function mistakeOf(read: () => unknown): OptionsError | undefined {
  try {
    read();
    return undefined;
  } catch (error) {
    if (error instanceof OptionsError) return error;
    throw error;
  }
}

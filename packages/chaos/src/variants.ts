import { OptionsError } from 'holdfast';
import {
  type Field,
  type InputOf,
  readTable,
  type SettingsOf,
  type SpecOf,
  type Table,
} from 'holdfast/fields';

export type Required<F> = F & { readonly required: true };
export type Variants = Readonly<Record<string, Table>>;

/** The type of the input. The field `Tag` names the variant, and the other fields belong to that variant. */
export type VariantSpec<Tag extends string, V extends Variants> = {
  [K in keyof V]: { [T in Tag]: K } & SpecOf<V[K]> & Said<V[K]>;
}[keyof V];
/** The type of the settings after validation, with defaults filled in. */
export type VariantSettings<Tag extends string, V extends Variants> = {
  [K in keyof V]: { readonly [T in Tag]: K } & SettingsOf<V[K]>;
}[keyof V];

type Said<T extends Table> = {
  [K in keyof T as T[K] extends { readonly required: true } ? K : never]-?: InputOf<T[K]>;
};

export function required<F extends Field>(field: F): Required<F> {
  return { ...field, required: true };
}

/** Returns a field that reads an object. The value of its `tag` selects the table for the other fields. */
export function variants<Tag extends string, V extends Variants>(
  tag: Tag,
  tables: V,
): Field<VariantSpec<Tag, V>, VariantSettings<Tag, V>> {
  return {
    kind: `an object with ${tag}`,
    read(value, path) {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
      const { [tag]: name, ...rest } = value as Record<string, unknown>;
      const table = typeof name === 'string' && Object.hasOwn(tables, name) ? tables[name] : undefined;
      if (table === undefined) {
        throw new OptionsError(`${path}.${tag}`, name, `one of ${Object.keys(tables).join(', ')}`);
      }
      const settings = readTable(table, rest, `${path}.`);
      for (const [key, field] of Object.entries(table)) {
        if ('required' in field && settings[key] === undefined) {
          throw new OptionsError(`${path}.${key}`, undefined, field.kind);
        }
      }
      return { [tag]: name, ...settings } as VariantSettings<Tag, V>;
    },
  };
}

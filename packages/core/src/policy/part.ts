import type { Pack } from '../decide/outcome.ts';
import type { SettingsOf, SpecOf, Table } from '../fields.ts';
import type { Plan } from './plan.ts';
import type { NameFields, RetryFields } from './policy-spec.ts';

/**
 * A part of a policy, such as the breaker. It has fields in the policy document, and code for the compiled
 * policy.
 */
export interface Part<T extends Table = Table, Spec = SpecOf<T>> {
  readonly key: string;
  /** −1: this part is created before the other parts. 1: it is created after them. Undefined: in between. */
  readonly order?: -1 | 1 | undefined;
  readonly fields: T;
  /**
   * Adds the part to the compiled policy. Each field in `settings` has already been checked by itself.
   * Conditions that involve several fields are checked here.
   */
  create(settings: SettingsOf<T>, plan: Plan, spec: Spec): void;
}

/**
 * The type of the document for a policy with these parts. It does not use mapped types, because editors show
 * the properties of mapped types without their comments.
 */
export type SpecOfParts<P extends readonly (Part | Pack)[]> = NameFields &
  UnionToIntersection<
    P[number] extends infer Each
      ? Each extends Part<infer _, infer Spec>
        ? WithPacks<Spec, PackNames<P>>
        : never
      : never
  >;

type PackNames<P extends readonly (Part | Pack)[]> = P[number] extends infer Each
  ? Each extends Pack<infer Name>
    ? Name
    : never
  : never;

type WithPacks<Spec, Name extends string> = 'retryOn' extends keyof Spec ? RetryFields<Name> : Spec;

type UnionToIntersection<U> = (U extends unknown ? (each: U) => void : never) extends (all: infer I) => void
  ? I
  : never;

/**
 * Returns the part unchanged, with the type of its settings inferred. `Spec` is the type of its fields in the
 * document. If `Spec` is an interface with comments, editors show these comments to users.
 */
export function definePart<const T extends Table, Spec = SpecOf<T>>(part: Part<T, Spec>): Part<T, Spec> {
  return part;
}

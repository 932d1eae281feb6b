import type { RetryOn } from '../classify/classifier.ts';
import type { Pack } from '../decide/outcome.ts';
import type { SettingsOf, SpecOf, Table } from '../fields.ts';
import type { Plan } from './plan.ts';

/**
 * A part of a policy, such as the breaker: the fields that it reads from the policy document, and what it adds to the
 * plan (the compiled policy). A policy that is made of chosen parts contains only their code.
 */
export interface Part<T extends Table = Table> {
  readonly key: string;
  /** The order of creation, whatever the order of the list. −1: before the other parts. 1: after them. */
  readonly order?: -1 | 1 | undefined;
  readonly fields: T;
  /**
   * Adds the part to the plan. Each field of `settings` has been validated; conditions on several fields are checked
   * here.
   */
  create(settings: SettingsOf<T>, plan: Plan, spec: SpecOf<T>): void;
}

/**
 * The type of the document of a policy with these parts. Its `retryOn` accepts the names of the packs (named
 * classifiers).
 */
export type SpecOfParts<P extends readonly (Part | Pack)[]> = {
  name?: string | undefined;
} & WithPacks<
  UnionToIntersection<
    P[number] extends infer Each ? (Each extends Part<infer T> ? SpecOf<T> : never) : never
  >,
  P[number] extends infer Each ? (Each extends Pack<infer Name> ? Name : never) : never
>;

type WithPacks<Spec, Name extends string> = {
  [K in keyof Spec]: K extends 'retryOn' | 'retryOnly'
    ? RetryOn<Name> | readonly RetryOn<Name>[] | undefined
    : Spec[K];
};

type UnionToIntersection<U> = (U extends unknown ? (each: U) => void : never) extends (all: infer I) => void
  ? I
  : never;

/** Returns the part unchanged. It infers the type of the settings from the table of fields. */
export function definePart<const T extends Table>(part: Part<T>): Part<T> {
  return part;
}

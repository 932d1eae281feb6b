import type { z } from 'zod';
import { operationRoutes } from './operations.ts';
import { generalRoutes } from './overview.ts';
import { parkedRoutes } from './parked.ts';
import { assemblyRoutes, demoRoutes, gatewayRoutes, simulatorRoutes } from './parts.ts';
import { policyRoutes, ruleRoutes, topicRoutes } from './steering.ts';

/** All routes of the API, by method and path. The prefix is `/api/v1`. */
export const routes = {
  ...generalRoutes,
  ...parkedRoutes,
  ...operationRoutes,
  ...ruleRoutes,
  ...topicRoutes,
  ...policyRoutes,
  ...assemblyRoutes,
  ...gatewayRoutes,
  ...simulatorRoutes,
  ...demoRoutes,
};

/** All routes of the API by name, each with its method, path, role and schemas. */
export type Routes = typeof routes;
/** The name of a route of the API. */
export type RouteName = keyof Routes;

/** The request of a route, as the page or a program sends it. */
export type Question<Name extends RouteName> = {
  readonly path: z.input<Routes[Name]['path']>;
  readonly query: z.input<Routes[Name]['query']>;
  readonly body: z.input<Routes[Name]['body']>;
};

/** The request of a route as its handler gets it: checked, and with defaults filled in. */
export type CheckedQuestion<Name extends RouteName> = {
  readonly path: z.output<Routes[Name]['path']>;
  readonly query: z.output<Routes[Name]['query']>;
  readonly body: z.output<Routes[Name]['body']>;
};

/** The body of a route's answer with status 200. */
export type AnswerOf<Name extends RouteName> = DeepReadonly<z.output<Routes[Name]['answer']>>;

/** Makes all fields readonly, also nested ones. */
export type DeepReadonly<T> = T extends object ? { readonly [Name in keyof T]: DeepReadonly<T[Name]> } : T;

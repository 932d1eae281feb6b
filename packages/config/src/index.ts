export { type Assertion, holds, parseAssertion, type Relation } from './assertion.ts';
export { ConfigError, type Problem } from './config-error.ts';
export { readDocument, type SourceDocument } from './document.ts';
export { mistakesIn } from './mistakes.ts';
export { parsePolicies, policiesSchema, policyTable } from './policies.ts';
export {
  type Bound,
  type CallSettings,
  type ClientsSettings,
  type FaultSettings,
  type Metric,
  metrics,
  parseScenario,
  type Scenario,
  type ServiceSettings,
  scenarioSchema,
  type TimeSettings,
  underTest,
} from './scenario.ts';
export { missingPartIn } from './scenario-rules.ts';
export { mapOf, needed, parseTable } from './table.ts';
export { type Schema, schemaOf } from './table-schema.ts';

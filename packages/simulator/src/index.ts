export {
  type ComparedPolicy,
  type Comparison,
  type ComparisonOptions,
  comparePolicies,
  type FaultWindow,
  type Group,
} from './comparison.ts';
export { type Band, band, median, type Spread, spread } from './estimates.ts';
export { EventQueue } from './event-queue.ts';
export { harmsOf } from './harms.ts';
export type { CallerSeries, ServiceSeries } from './over-time.ts';
export { type Incident, type IncidentFilter, type RecordedFigures, readIncident } from './replay.ts';
export { reportCsv } from './report/csv.ts';
export { heatHtml, heatText } from './report/heat-map.ts';
export { reportHtml } from './report/html.ts';
export { reportText, sparkline } from './report/text.ts';
export { type Figures, type Part, Results, type RunReport, type ServiceFigures } from './results.ts';
export type { RunAnswer, RunRequest } from './run.ts';
export { RunPool } from './run-pool.ts';
export { type SimulationOptions, simulate, simulateAsync } from './simulate.ts';
export { readStorm, stormNames, stormPolicies, stormText } from './storm-files.ts';
export { type StormRow, type StormRunner, stormRunner } from './storm-runner.ts';
export {
  parseAxis,
  type Sweep,
  type SweepAxis,
  type SweepCell,
  type SweepQuestion,
  seedsOf,
  sweep,
} from './sweep.ts';
export {
  boundsOf,
  comparedIn,
  type Finding,
  type PolicyLibrary,
  type Trial,
  type TrialOptions,
  trialOf,
  tryPolicy,
} from './trial.ts';
export { type Goal, parseGoal } from './tune/goal.ts';
export { failingStorm, tuningStorms, unseenStorms } from './tune/storms.ts';
export {
  type Evidence,
  type Score,
  scorePolicies,
  searchByChance,
  type TuneOptions,
  tune,
} from './tune/tune.ts';
export {
  type WeatherBound,
  type WeatherCase,
  type WeatherFinding,
  type WeatherVerdict,
  weatherCases,
  weatherRuns,
  weatherVerdict,
} from './weather.ts';

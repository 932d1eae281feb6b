export { EventQueue } from './event-queue.ts';
export { type Figures, type Part, Results, type RunReport, type ServiceFigures } from './results.ts';
export { type SimulationOptions, simulate, simulateAsync } from './simulate.ts';
export {
  comparedIn,
  type Finding,
  type PolicyLibrary,
  type Trial,
  type TrialOptions,
  tryPolicy,
} from './trial.ts';

export type { AnswerOf, Question, RouteName, Routes } from './api/routes.ts';
export type {
  AssembliesPart,
  ConsoleOptions,
  DemoPart,
  GatewayPart,
  PayloadCheck,
  SimulatorPart,
} from './console-options.ts';
export { type Console, type ListenOptions, openConsole } from './open-console.ts';

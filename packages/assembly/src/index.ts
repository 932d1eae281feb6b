export {
  type Assemblies,
  type AssembliesOptions,
  type AssembliesState,
  type AssemblyEdit,
  type AssemblyHandle,
  assemblies,
  type Inspection,
  type StartOptions,
} from './assemblies.ts';
export { type AssemblyOptions, assembly, type Program } from './assembly.ts';
export {
  AmbiguousStepError,
  AssemblyParkedError,
  AssemblyStateError,
  AssemblyStoppedError,
  CheckFailedError,
  MismatchError,
  ProgramChangedError,
  SignalTimeoutError,
  StepAbortedError,
  StepFailedError,
  UnknownAssemblyError,
} from './assembly-errors.ts';
export type { AssemblyStatus, Progress, StatusState } from './assembly-status.ts';
export type { Check, StandardSchema } from './check.ts';
export { assemblyDoor, type DoorOptions, type Permission } from './http-door.ts';
export type { Notice } from './notices.ts';
export { programTopic } from './program-controls.ts';
export type { Schedule } from './schedules.ts';
export type {
  ChildOptions,
  EachOptions,
  Step,
  StepContext,
  StepOptions,
  Undo,
  UndoContext,
  WaitOptions,
} from './step.ts';
export type { StepPolicySpec } from './step-policy.ts';
export type { NoticeType, Notify } from './webhook.ts';
export type { WebhookOptions } from './webhook-program.ts';

import type {
  Act,
  Engine,
  Journal,
  Payload,
  StoredAssembly,
  StoredSignal,
  StoredStep,
} from '@holdfast/contracts';
import type { Clock } from 'holdfast';
import type { AnswerOf } from './api/routes.ts';

/** An engine with all parts that the console needs. The SQLite and PostgreSQL engines have them. */
export type ConsoleEngine = Engine & {
  readonly broker: NonNullable<Engine['broker']>;
  readonly triage: NonNullable<Engine['triage']>;
  readonly controls: NonNullable<Engine['controls']>;
  readonly audit: NonNullable<Engine['audit']>;
  readonly presence: NonNullable<Engine['presence']>;
};

/** Checks an edited payload. Returns a list of errors; if it is empty, the payload is valid. */
export type PayloadCheck = (payload: Payload) => readonly string[] | Promise<readonly string[]>;

/** Tests policies in simulated outages, as `stormRunner()` of `@holdfast/simulator` does. */
export interface SimulatorPart {
  scenarios(): readonly { readonly name: string; readonly summary: string }[];
  /** Runs a policy in a scenario. If the policy is invalid, it rejects with a sentence that says why. */
  run(
    scenario: string,
    policy: string,
    options: { readonly signal: AbortSignal; readonly onProgress: (share: number) => void },
  ): Promise<NonNullable<AnswerOf<'GET /simulator/runs/:id'>['run']['rows']>>;
}

/** The methods of `assemblies()` of `@holdfast/assembly` that the console calls. */
export interface AssembliesPart {
  readonly journal: Journal;
  inspect(id: string): Promise<{
    readonly assembly: StoredAssembly;
    readonly status: { readonly text: string };
    readonly steps: readonly StoredStep[];
    readonly signals: readonly StoredSignal[];
  }>;
  edit(
    id: string,
    edit: { readonly input?: unknown; readonly results?: Readonly<Record<string, unknown>> },
    act: Act,
  ): Promise<void>;
  resume(id: string, act: Act, options?: { readonly acceptChange?: boolean }): Promise<void>;
  get(id: string): { cancel(reason: string, who?: string): Promise<void> };
}

/** Access to the admin API of a gateway. */
export interface GatewayPart {
  /** Sends a request to the admin API, and returns the status and the JSON of its answer. */
  ask(method: 'GET' | 'POST', path: string, body?: unknown): Promise<{ status: number; body: unknown }>;
}

/** A demo: the faults that users can switch on, and the guided tour. */
export interface DemoPart {
  state(): AnswerOf<'GET /demo'> | Promise<AnswerOf<'GET /demo'>>;
  setFault(name: string, isOn: boolean): Promise<boolean>;
}

/** The options of `openConsole`. Only `engine` is required. */
export interface ConsoleOptions {
  /** The engine that stores events, controls, the audit log and reports of processes. Required. */
  readonly engine: Engine;
  /**
   * The token that allows to view and to change things. At least 32 characters. Default: a new token, which
   * is part of the link.
   */
  readonly token?: string | undefined;
  /** A token that allows only to view. At least 32 characters. Default: none. */
  readonly viewToken?: string | undefined;
  /** Host names that browsers use for the console, in addition to localhost. Default: none. */
  readonly hosts?: readonly string[] | undefined;
  /** True: browsers reach the console over HTTPS, through a proxy that terminates TLS. Default: `false`. */
  readonly secure?: boolean | undefined;
  /** The name of the store that the page shows. Default: the name of the engine. */
  readonly storeName?: string | undefined;
  /** Fields that are hidden in all payloads, in addition to those that consumers name. Default: none. */
  readonly redact?: readonly string[] | undefined;
  /** Checks of edited payloads, by topic. Default: none. */
  readonly checks?: Readonly<Record<string, PayloadCheck>> | undefined;
  /**
   * Assemblies (work of several steps) to show and control. `assemblies({ engine, programs: [] })` is enough.
   * Default: none.
   */
  readonly assemblies?: AssembliesPart | undefined;
  /** A gateway to show and control. Default: none. */
  readonly gateway?: GatewayPart | undefined;
  /** The simulator for the screen "Simulator". Default: none. */
  readonly simulator?: SimulatorPart | undefined;
  /** The faults of a demo. Default: none. */
  readonly demo?: DemoPart | undefined;
  /** Called for unexpected errors. Default: none. */
  readonly onError?: ((error: unknown) => void) | undefined;
  /** The clock for sessions and timeouts; tests pass a fake clock. Default: the system's. */
  readonly clock?: Clock | undefined;
}

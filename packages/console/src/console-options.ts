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

/** A store with everything that the console shows. SQLite and PostgreSQL have all of it. */
export type ConsoleEngine = Engine & {
  readonly broker: NonNullable<Engine['broker']>;
  readonly triage: NonNullable<Engine['triage']>;
  readonly controls: NonNullable<Engine['controls']>;
  readonly audit: NonNullable<Engine['audit']>;
  readonly presence: NonNullable<Engine['presence']>;
};

/** Returns what is wrong with an edited payload; an empty list: nothing. */
export type PayloadCheck = (payload: Payload) => readonly string[] | Promise<readonly string[]>;

/** Runs policies in storms, as `stormRunner()` of `@holdfast/simulator` does. */
export interface SimulatorPart {
  scenarios(): readonly { readonly name: string; readonly summary: string }[];
  /** Rejects with a sentence for a policy that is not understood. */
  run(
    scenario: string,
    policy: string,
    options: { readonly signal: AbortSignal; readonly onProgress: (share: number) => void },
  ): Promise<NonNullable<AnswerOf<'GET /simulator/runs/:id'>['run']['rows']>>;
}

/** What the console needs of `assemblies()` of `@holdfast/assembly`. */
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

/** A gateway's admin API. */
export interface GatewayPart {
  /** Sends a request to the admin API, and returns the status and the JSON of its answer. */
  ask(method: 'GET' | 'POST', path: string, body?: unknown): Promise<{ status: number; body: unknown }>;
}

/** The faults of a demo, and its guided tour. */
export interface DemoPart {
  state(): AnswerOf<'GET /demo'> | Promise<AnswerOf<'GET /demo'>>;
  setFault(name: string, isOn: boolean): Promise<boolean>;
}

/** The options of `openConsole`. Only `engine` is required. */
export interface ConsoleOptions {
  /** The store of events, controls, audit log and processes. Required. */
  readonly engine: Engine;
  /** Whoever has this token may operate. At least 32 characters. Default: a new token, which `link` has. */
  readonly token?: string | undefined;
  /** Whoever has this token may look, and change nothing. At least 32 characters. Default: none. */
  readonly viewToken?: string | undefined;
  /** Host names under which the console is reached, beside localhost. Default: none. */
  readonly hosts?: readonly string[] | undefined;
  /** True: the console is reached over TLS, which a server in front of it ends. Default: `false`. */
  readonly secure?: boolean | undefined;
  /** The name of the store, for people. Default: the name of the engine. */
  readonly storeName?: string | undefined;
  /** Fields that are covered in all payloads, beside those that consumers name. Default: none. */
  readonly redact?: readonly string[] | undefined;
  /** Checks of edited payloads, by topic. Default: none. */
  readonly checks?: Readonly<Record<string, PayloadCheck>> | undefined;
  /** Assemblies to show and steer: `assemblies({ engine, programs: [] })` is enough. Default: none. */
  readonly assemblies?: AssembliesPart | undefined;
  /** A gateway to show and steer. Default: none. */
  readonly gateway?: GatewayPart | undefined;
  /** A simulator for the screen of that name. Default: none. */
  readonly simulator?: SimulatorPart | undefined;
  /** The faults of a demo. Default: none. */
  readonly demo?: DemoPart | undefined;
  /** Called for errors that nobody expects. Default: none. */
  readonly onError?: ((error: unknown) => void) | undefined;
  /** The clock of waits and limits. Default: the system's. */
  readonly clock?: Clock | undefined;
}

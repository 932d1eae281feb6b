/** What was seen: whether the claim held, or a figure. */
export type Observed = boolean | number;

/** The servers that a trial of a queue uses. */
export interface Servers {
  readonly redisUrl: string;
  readonly postgresUrl: string;
}

export type ServerName = 'redis' | 'postgres';

/** Performs the scenario with one library, as the documentation of that library says, and returns what happened. */
export type Trial = (servers: Servers) => Promise<Observed>;

/** A library in a column of a table. */
export interface Contestant {
  readonly label: string;
  /** The npm packages whose versions are told; none for Holdfast, which is in this repository. */
  readonly packages: readonly string[];
  readonly needs?: ServerName;
}

/** A row of a table. */
export interface Claim<Name extends string = string> {
  readonly id: string;
  /** What a user wants to be true, or what is counted. */
  readonly sentence: string;
  /** What was tried, and what a reader must know to judge the row fairly. */
  readonly how: string;
  /** For a figure: the bounds that Holdfast must keep. */
  readonly atMost?: number;
  readonly atLeast?: number;
  /** For a figure: it is a share, from 0 to 1. */
  readonly isShare?: boolean;
  /** A text says why the question does not arise for this library. */
  readonly trials: Readonly<Record<Name, Trial | string>>;
}

/** A table. */
export interface Theme<Name extends string = string> {
  readonly name: string;
  /** The file with its claims, in this folder. */
  readonly file: string;
  readonly contestants: Readonly<Record<Name, Contestant>>;
  readonly claims: readonly Claim<Name>[];
  /** Trials on fake time run one after the other, because they replace the timers of the process. */
  readonly isInTurn: boolean;
}

/** The text of a cell. */
export function cellOf({ isShare = false }: Claim, observed: Observed): string {
  if (typeof observed === 'boolean') return observed ? 'yes' : '**no**';
  if (isShare) return `${Math.round(observed * 100)} %`;
  return observed < 0.1 ? 'under 0.1' : observed.toFixed(1);
}

/** Whether Holdfast may show it: the claim held, or the figure is within its bounds. */
export function isGood({ atMost = Infinity, atLeast = 0 }: Claim, observed: Observed): boolean {
  return typeof observed === 'boolean' ? observed : observed >= atLeast && observed <= atMost;
}

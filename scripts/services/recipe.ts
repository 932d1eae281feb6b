/** How one kind of server is found, set up and recognised. A new kind is one file with one of these, and a line in `catalog.ts`. */
export interface Recipe {
  /** `postgres`, `redis`. */
  readonly name: string;
  /** Names a server that is there already; it is used as it is, and never stopped. */
  readonly urlVariable: string;
  /** What Debian calls it, or what is needed to fetch it. */
  readonly debianPackages: readonly string[];
  /** It takes 100 MB or more: only a few of these run at a time. */
  readonly isHeavy?: boolean;
  find(): Found;
  /** What Debian does not have, fetched once into the cache. Rejects where it cannot be had. */
  fetch?(programs: Programs): Promise<Programs>;
  /** Whom to run as, for servers that refuse root; absent: as we are. */
  user?(): SystemUser | undefined;
  /** Prepares an empty folder, and says how to run the server in it. */
  plan(programs: Programs, place: Place): Promise<Plan>;
}

/** Where the programs are on this machine, or what is missing. */
export type Found =
  | { readonly programs: Programs; readonly missing?: undefined }
  | { readonly missing: string };

/** Programs, and what else was fetched, by name, each with its path. */
export type Programs = Readonly<Record<string, string>>;

/** Where a server may live. */
export interface Place {
  /** Its own, empty. */
  readonly folder: string;
  /** On loopback, free a moment ago. */
  readonly port: number;
  readonly user: SystemUser | undefined;
  /** Settings of the server itself, in its own words. */
  readonly settings: Readonly<Record<string, string>>;
  /** It is for a benchmark: speed under load counts, the time to start does not. */
  readonly isMeasured: boolean;
}

export interface SystemUser {
  readonly uid: number;
  readonly gid: number;
}

export interface Plan {
  readonly url: string;
  readonly command: ServerCommand;
  /** Beside the variables that we have ourselves. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Another program that the server needs: it starts before the first start of the server, and ends after its last. */
  readonly companion?: ServerCommand;
  /** The signal for an orderly and quick end, with clients connected. */
  readonly stopSignal: NodeJS.Signals;
  isReady(): Promise<boolean>;
}

export type ServerCommand = readonly [program: string, ...options: string[]];

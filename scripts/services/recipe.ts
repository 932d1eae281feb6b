/** How one kind of server is found, set up and recognised. A new kind is one file with one of these, and a line in `catalog.ts`. */
export interface Recipe {
  /** `postgres`, `redis`. */
  readonly name: string;
  /** Names a server that is there already; it is used as it is, and never stopped. */
  readonly urlVariable: string;
  /** What Debian calls it. */
  readonly debianPackages: readonly string[];
  find(): Found;
  /** Whom to run as, for servers that refuse root; absent: as we are. */
  user?(): SystemUser | undefined;
  /** Prepares an empty folder, and says how to run the server in it. */
  plan(programs: Programs, place: Place): Promise<Plan>;
}

/** Where the programs are on this machine, or what is missing. */
export type Found =
  | { readonly programs: Programs; readonly missing?: undefined }
  | { readonly missing: string };

/** Programs by name, each with its path. */
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
}

export interface SystemUser {
  readonly uid: number;
  readonly gid: number;
}

export interface Plan {
  readonly url: string;
  readonly command: readonly [program: string, ...options: string[]];
  /** The signal for an orderly and quick end, with clients connected. */
  readonly stopSignal: NodeJS.Signals;
  isReady(): Promise<boolean>;
}

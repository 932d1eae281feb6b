import { type AmbientContext, OptionsError, type Plan, type Priority } from 'holdfast';
import { writeRequest } from 'holdfast/wire';

/** Which servers get the `Holdfast` request header: all, none, or a list of origins. */
export type Announce = boolean | readonly string[];

export interface HoldfastHeader {
  readonly owner: true | undefined;
  readonly priority: Priority | undefined;
}

/**
 * Returns the fields of the `Holdfast` request header. `owner` means that this client, or the caller of this
 * service, does the retries. So the server must not retry.
 */
export function holdfastHeaderOf(
  plan: Plan,
  mayRepeat: boolean,
  ambient: AmbientContext | undefined,
  priority: Priority | undefined,
): HoldfastHeader {
  const retries = mayRepeat && plan.attempts > 1 && !plan.killSwitch.isOn && !ambient?.packaging;
  const owns = ambient?.ownedUpstream || retries;
  return { owner: owns ? true : undefined, priority: priority ?? ambient?.priority };
}

export function writeHoldfastHeader(
  { owner, priority }: HoldfastHeader,
  attempt: number,
  patienceMs: number,
): string {
  return writeRequest({ patienceMs, attempt, owner, priority }) as string;
}

/**
 * Returns a function that says whether requests to an origin get the `Holdfast` header. `ownOrigin` is the
 * origin of the web page in a browser; requests to it always get the header.
 */
export function announceFilter(
  announce: Announce,
  ownOrigin: string | undefined,
): (origin: string) => boolean {
  if (announce === true) return () => true;
  const listed = new Set(announce ? [announce].flat() : []);
  for (const each of listed) {
    if (URL.canParse(each) && new URL(each).origin === each) continue;
    throw new OptionsError('announce', each, 'true, false, or origins such as "https://api.example.com"');
  }
  if (ownOrigin !== undefined) listed.add(ownOrigin);
  return (origin) => listed.has(origin);
}

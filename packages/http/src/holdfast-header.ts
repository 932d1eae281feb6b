import { type AmbientContext, OptionsError, type Plan, type Priority } from 'holdfast';
import { writeRequest } from 'holdfast/wire';

/** Which servers get the `Holdfast` request header: all, none, or a list of origins. */
export type Announce = boolean | readonly string[];

/** The fields of the `Holdfast` header that are the same for all attempts of one request. */
export interface HoldfastHeader {
  readonly owner: true | undefined;
  readonly priority: Priority | undefined;
}

/**
 * Makes the header's fields. `owner` is set if this client, or a client upstream of this service, retries the request:
 * the services that receive the header must then not retry.
 */
export function holdfastHeaderOf(
  plan: Plan,
  mayRepeat: boolean,
  ambient: AmbientContext | undefined,
  priority: Priority | undefined,
): HoldfastHeader {
  const owns = ambient?.ownedUpstream || (mayRepeat && plan.attempts > 1 && !plan.killSwitch.isOn);
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
 * Returns a function that tells whether an origin gets the header. `ownOrigin`, the origin of the web page, always gets
 * it.
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

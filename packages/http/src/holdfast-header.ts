import { type AmbientContext, OptionsError, type Plan, type Priority } from 'holdfast';
import { writeRequest } from 'holdfast/wire';

/** Whom the `Holdfast` header is sent to: everybody, nobody, or some origins. */
export type Announce = boolean | readonly string[];

/** What is the same for all attempts of one request. */
export interface HoldfastHeader {
  readonly owner: true | undefined;
  readonly priority: Priority | undefined;
}

/** `owner` is said where this layer, or one above it, repeats the request: then those below must not. */
export function announcementOf(
  plan: Plan,
  mayRepeat: boolean,
  around: AmbientContext | undefined,
  priority: Priority | undefined,
): HoldfastHeader {
  const owns = around?.ownedUpstream || (mayRepeat && plan.attempts > 1 && !plan.killSwitch.isOn);
  return { owner: owns ? true : undefined, priority: priority ?? around?.priority };
}

export function announce({ owner, priority }: HoldfastHeader, attempt: number, patienceMs: number): string {
  return writeRequest({ patienceMs, attempt, owner, priority }) as string;
}

/** Tells by origin whether to announce; `own` is the page's, where there is one. */
export function announcesTo(said: Announce, own: string | undefined): (origin: string) => boolean {
  if (said === true) return () => true;
  const listed = new Set(said ? [said].flat() : []);
  for (const each of listed) {
    if (URL.canParse(each) && new URL(each).origin === each) continue;
    throw new OptionsError('announce', each, 'true, false, or origins such as "https://api.example.com"');
  }
  if (own !== undefined) listed.add(own);
  return (origin) => listed.has(origin);
}

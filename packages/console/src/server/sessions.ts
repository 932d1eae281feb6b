import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Clock } from 'holdfast';
import { Problem } from './problem.ts';

export interface Session {
  readonly who: string;
  readonly role: 'view' | 'operate';
  /** Epoch ms. */
  readonly endsAt: number;
}

export interface SessionSettings {
  readonly operateToken: string;
  readonly viewToken: string | undefined;
  readonly clock: Clock;
}

const sessionMs = 12 * 36e5;
/** Above this number, the oldest session is removed. */
const sessionsMax = 1000;
const triesPerMinute = 5;
/** Wrong tokens are counted for at most this many addresses. */
const addressesMax = 10_000;

/** The sessions of signed-in users. They are in the memory of this process, so a restart ends them. */
export class Sessions {
  readonly #settings: SessionSettings;
  readonly #sessions = new Map<string, Session>();
  readonly #tries = new Map<string, { count: number; since: number }>();
  readonly #operate: Buffer;
  readonly #view: Buffer | undefined;

  constructor(settings: SessionSettings) {
    this.#settings = settings;
    this.#operate = digest(settings.operateToken);
    this.#view = settings.viewToken === undefined ? undefined : digest(settings.viewToken);
  }

  /** Throws a `Problem` if the token is wrong, or after too many wrong tokens from this address. */
  signIn(token: string, who: string, address: string): { readonly id: string; readonly session: Session } {
    const role = this.#checked(token, address);
    const id = randomBytes(32).toString('base64url');
    const session: Session = { who, role, endsAt: this.#settings.clock.epochMs() + sessionMs };
    if (this.#sessions.size >= sessionsMax) this.#sessions.delete(this.#sessions.keys().next().value!);
    this.#sessions.set(nameOf(id), session);
    return { id, session };
  }

  /** Returns `undefined` if the session does not exist or has ended. */
  ofCookie(id: string): Session | undefined {
    const session = this.#sessions.get(nameOf(id));
    if (session && session.endsAt > this.#settings.clock.epochMs()) return session;
    this.#sessions.delete(nameOf(id));
    return undefined;
  }

  /** A session for a program that sends its token with each request. It is not stored. */
  ofToken(token: string, address: string): Session {
    const role = this.#checked(token, address);
    return { who: 'token', role, endsAt: Infinity };
  }

  signOut(id: string): boolean {
    return this.#sessions.delete(nameOf(id));
  }

  #checked(token: string, address: string): Session['role'] {
    const now = this.#settings.clock.now();
    const tries = this.#tries.get(address);
    const isRecent = tries !== undefined && now - tries.since < 60_000;
    if (isRecent && tries.count >= triesPerMinute) {
      const waitS = Math.ceil((60_000 - (now - tries.since)) / 1000);
      throw new Problem('slow-down', `Too many wrong tokens; try again in ${waitS} s.`, {}, waitS);
    }
    const role = this.#roleOf(token);
    if (role) return role;
    if (!isRecent && this.#tries.size >= addressesMax) this.#tries.delete(this.#tries.keys().next().value!);
    this.#tries.set(address, isRecent ? { ...tries, count: tries.count + 1 } : { count: 1, since: now });
    throw new Problem('sign-in', 'This token is not known here.');
  }

  #roleOf(token: string): Session['role'] | undefined {
    // Compare digests instead of tokens. Their lengths are equal, so the comparison always takes the same
    // time.
    const given = digest(token);
    const mayOperate = timingSafeEqual(given, this.#operate);
    const mayView = this.#view !== undefined && timingSafeEqual(given, this.#view);
    return mayOperate ? 'operate' : mayView ? 'view' : undefined;
  }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** Session ids are stored as digests, so a memory dump of this process contains no usable id. */
function nameOf(id: string): string {
  return digest(id).toString('base64url');
}

import { signal } from '@preact/signals';
import type { AnswerOf } from '../src/api/routes.ts';
import { ask, onSignedOut } from './api.ts';

export type SessionInfo = AnswerOf<'GET /session'>;

/** `undefined`: not known yet. `null`: nobody is signed in. */
export const session = signal<SessionInfo | null | undefined>(undefined);

onSignedOut.call = () => {
  session.value = null;
};

/** Whether the person may act; buttons that may not be used stay, and say why. */
export function mayOperate(): boolean {
  return session.value?.role === 'operate';
}

/** Takes the token out of the link, so that it is in no history, and signs in with it. */
export async function begin(): Promise<void> {
  const token = new URLSearchParams(location.hash.slice(1)).get('token');
  if (token !== null) {
    history.replaceState(null, '', location.pathname + location.search);
    const who = localStorage.getItem('holdfast-who');
    if (who !== null && who !== '') {
      await signIn(token, who).catch(() => {
        session.value = null;
      });
      if (session.value) return;
    }
    pendingToken = token;
  }
  try {
    session.value = await ask('GET /session');
  } catch {
    // Nobody is signed in, or the server is away: the sign-in page says which when it is used.
    session.value = null;
  }
}

/** The token of the link, until the person has said who they are. */
export let pendingToken: string | undefined;

export async function signIn(token: string, who: string): Promise<void> {
  await ask('POST /session', { body: { token, who } });
  localStorage.setItem('holdfast-who', who);
  pendingToken = undefined;
  session.value = await ask('GET /session');
}

export async function signOut(): Promise<void> {
  await ask('DELETE /session');
  session.value = null;
}

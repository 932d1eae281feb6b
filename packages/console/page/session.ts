import { signal } from '@preact/signals';
import type { AnswerOf } from '../src/api/routes.ts';
import { ask, onSignedOut } from './api.ts';

export type SessionInfo = AnswerOf<'GET /session'>;

/** `undefined`: not loaded yet. `null`: not signed in. */
export const session = signal<SessionInfo | null | undefined>(undefined);

onSignedOut.call = () => {
  session.value = null;
};

/** True if the user may change things. Otherwise the buttons are disabled and say why. */
export function mayOperate(): boolean {
  return session.value?.role === 'operate';
}

/**
 * Loads the session. If the URL has a token, the token is removed from it, so that the browser history does
 * not contain it. If the name of the user is known, the token is used to sign in.
 */
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
    // The user is not signed in, or the server does not answer. The sign-in form will show which.
    session.value = null;
  }
}

/** The token from the link. It is used when the user has entered a name. */
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

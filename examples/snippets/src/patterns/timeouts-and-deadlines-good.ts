import { createFetch } from '@holdfast/http';
import { deadline, guardWeb } from '@holdfast/server';
import { policy } from 'holdfast';

/** The customer waits 2 s, all attempts included. Each request says in a header how much of that is left. */
export const profiles = policy({ name: 'profiles', patience: '2s' });

const send = createFetch({ policy: profiles });

export async function profile(url: string): Promise<string> {
  const response = await send(url);
  return response.text();
}

/** The server refuses a request whose time is over, and `signal` aborts when the rest of the time has passed. */
export const serveProfile = guardWeb([deadline()], async (_request, { signal }) => {
  signal.throwIfAborted();
  return new Response('Ann');
});

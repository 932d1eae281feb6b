import { useState } from 'preact/hooks';
import { pendingToken, signIn } from '../session.ts';

/** Asks for a name, and for the token if the link did not contain it. */
export function SignIn() {
  const [error, setError] = useState('');
  const hasToken = pendingToken !== undefined;
  return (
    <main id="main" class="sign-in">
      <form
        class="sheet"
        onSubmit={(event) => {
          event.preventDefault();
          const given = new FormData(event.currentTarget);
          const token = pendingToken ?? String(given.get('token') ?? '');
          signIn(token, String(given.get('who') ?? '')).catch((failure: Error) => setError(failure.message));
        }}
      >
        <header>
          <h1 tabIndex={-1}>Sign in</h1>
        </header>
        <div class="body stack">
          <p>Every act is kept with your name and your reason.</p>
          <label class="field">
            <span>Your name</span>
            <input
              name="who"
              required
              maxLength={100}
              autocomplete="username"
              defaultValue={localStorage.getItem('holdfast-who') ?? ''}
            />
          </label>
          {!hasToken && (
            <label class="field">
              <span>The token that "holdfast console" has printed</span>
              <input name="token" type="password" required autocomplete="current-password" />
            </label>
          )}
          {error !== '' && (
            <p class="is-parked" role="alert">
              {error}
            </p>
          )}
        </div>
        <footer>
          <button type="submit" class="btn first">
            Sign in
          </button>
        </footer>
      </form>
    </main>
  );
}

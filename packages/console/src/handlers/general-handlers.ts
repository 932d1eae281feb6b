import { subject } from '@holdfast/contracts';
import { canUndo, undo } from '@holdfast/events';
import { type Clock, systemRandom } from 'holdfast';
import type { generalRoutes } from '../api/overview.ts';
import type { ConsoleEngine } from '../console-options.ts';
import { cookieName, cookieOf } from '../server/app.ts';
import type { Handlers } from '../server/handler.ts';
import { Problem } from '../server/problem.ts';
import type { Sessions } from '../server/sessions.ts';
import type { Live } from '../watch/live.ts';
import { type Observer, seriesNames } from '../watch/observer.ts';
import { overviewOf, type StoreInfo } from '../watch/overview.ts';
import { stepMs } from '../watch/ring.ts';
import { eventStream } from './event-stream.ts';
import { shownEntry } from './operation-handlers.ts';
import { listAnswer } from './parked-handlers.ts';

export interface GeneralSettings {
  readonly engine: ConsoleEngine;
  readonly observer: Observer;
  readonly live: Live;
  readonly sessions: Sessions;
  readonly clock: Clock;
  readonly isSecure: boolean;
  readonly store: StoreInfo;
  readonly version: string;
  readonly parts: {
    readonly assemblies: boolean;
    readonly gateway: boolean;
    readonly simulator: boolean;
    readonly demo: boolean;
  };
}

export function generalHandlers(settings: GeneralSettings): Handlers<keyof typeof generalRoutes> {
  const { engine, observer, live, sessions, isSecure, store, parts, version, clock } = settings;
  const { audit } = engine;

  return {
    async 'POST /session'({ body: { token, who } }, { address }) {
      const { id, session } = sessions.signIn(token, who, address);
      await audit.record({
        ...{ who, why: `signed in, may ${session.role}`, what: 'sign_in' },
        subjects: [subject('session', session.role)],
      });
      const maxAge = Math.ceil((session.endsAt - clock.epochMs()) / 1000);
      const cookie = [
        `${cookieName(isSecure)}=${id}`,
        ...['HttpOnly', 'SameSite=Strict', 'Path=/', `Max-Age=${maxAge}`],
        ...(isSecure ? ['Secure'] : []),
      ].join('; ');
      return new Response(JSON.stringify(session), {
        headers: { 'content-type': 'application/json', 'set-cookie': cookie },
      });
    },

    'GET /session'(_question, { session }) {
      return { ...session, parts, version };
    },

    'DELETE /session'(_question, { request }) {
      const id = cookieOf(request, cookieName(isSecure));
      const signedOut = id !== undefined && sessions.signOut(id);
      return new Response(JSON.stringify({ signedOut }), {
        headers: {
          'content-type': 'application/json',
          'set-cookie': `${cookieName(isSecure)}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0`,
        },
      });
    },

    async 'GET /healthz'() {
      try {
        await observer.refresh();
        return { status: 'pass' };
      } catch {
        // A health check needs only the status. `onError` gets the error itself.
        return { status: 'fail' };
      }
    },

    async 'GET /overview'({ query: { window } }) {
      return overviewOf(observer, await observer.fleet(), window, store);
    },

    async 'GET /series'({ query: { of, window } }) {
      const now = await observer.now();
      const wanted = of.split(',').map((name) => {
        const known = seriesNames.find((each) => each === name);
        if (known) return known;
        throw new Problem(
          'bad-question',
          `Of: expected some of ${seriesNames.join(', ')}, got "${name.slice(0, 50)}".`,
        );
      });
      const series = wanted.map((name) => ({ name, points: observer.series(name).points(window, now) }));
      return { now, stepMs: stepMs(window), series };
    },

    async 'GET /live'({ query: { window } }, { request }) {
      if (live.isFull)
        throw new Problem('slow-down', 'Too many pages are open: at most 100 streams.', {}, 10);
      await observer.fleet();
      return eventStream(live, window, request, systemRandom);
    },

    async 'GET /audit'({ query: { limit, cursor, who, what, of, from, to } }) {
      const question = {
        ...(who !== undefined && { who }),
        ...(what !== undefined && { what }),
        ...(of !== undefined && { subject: of as never }),
        ...(from !== undefined && { from }),
        ...(to !== undefined && { to }),
      };
      const page = await audit.list(question, { limit, ...(cursor !== undefined && { cursor }) });
      return listAnswer(await observer.now(), page, (entry) => shownEntry(entry, canUndo(entry)));
    },

    async 'POST /audit/:id/undo'({ path: { id }, body: { why } }, { act }) {
      if (!(await audit.get(id))) throw new Problem('unknown', `There is no act ${id}.`);
      await undo(engine, id, act(why));
      observer.changed();
      return { undone: id };
    },
  };
}

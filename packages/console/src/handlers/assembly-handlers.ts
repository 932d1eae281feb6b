import type { Payload, StoredAssembly, StoredStep } from '@holdfast/contracts';
import type { assemblyRoutes } from '../api/parts.ts';
import type { AssembliesPart, ConsoleEngine } from '../console-options.ts';
import type { Handlers } from '../server/handler.ts';
import { Problem } from '../server/problem.ts';
import { listAnswer, plain } from './parked-handlers.ts';

export interface AssemblySettings {
  readonly engine: ConsoleEngine;
  readonly part: AssembliesPart | undefined;
}

export function assemblyHandlers({ part }: AssemblySettings): Handlers<keyof typeof assemblyRoutes> {
  function given(): AssembliesPart {
    if (part) return part;
    throw new Problem('feature-missing', 'This console was started without assemblies.');
  }

  return {
    async 'GET /assemblies'({ query: { limit, cursor, state, name, tenant, key, group } }) {
      const { journal } = given();
      const filter = plain({ state, name, tenant, key, fingerprint: group });
      const page = await journal.list(filter as never, { limit, ...(cursor !== undefined && { cursor }) });
      return {
        ...listAnswer(await journal.now(), page, summaryOf),
        counts: (await journal.counts()).map((each) => ({ ...each })),
        groups: (await journal.parkedGroups(20)).map(plain),
      };
    },

    async 'GET /assemblies/:id'({ path: { id } }) {
      const { journal, inspect } = given();
      const { assembly, status, steps, signals } = await inspect(id);
      return {
        now: await journal.now(),
        assembly: summaryOf(assembly),
        input: textOf(assembly.input),
        ...(assembly.result !== undefined && { result: textOf(assembly.result) }),
        customer: status.text,
        steps: steps.map(stepOf),
        signals: signals.map(({ number, name, at }) => ({ number, name, at })),
        acts: assembly.acts.map(({ who, why, at, what }) => ({ who, why, at, what })),
      };
    },

    async 'POST /assemblies/:id/resume'({ path: { id }, body: { acceptChange, why } }, { act }) {
      await given().resume(id, act(why), acceptChange === undefined ? {} : { acceptChange });
      return { resumed: true };
    },

    async 'PATCH /assemblies/:id'({ path: { id }, body: { input, results, why } }, { act }) {
      if (input === undefined && !results)
        throw new Problem('bad-question', 'Give input or results: what is to change?');
      const edit = { ...(input !== undefined && { input }), ...(results && { results }) };
      await given().edit(id, edit, act(why));
      return { changed: true };
    },

    async 'POST /assemblies/:id/cancel'({ path: { id }, body: { why } }, { session }) {
      await given().get(id).cancel(why, session.who);
      return { requested: true };
    },
  };
}

function summaryOf(assembly: StoredAssembly) {
  const { id, name, version, state, stop, parked, tenant, key, queue } = assembly;
  const { acceptedAt, expiresAt, endedAt, dueAt } = assembly;
  return plain({
    ...{ id, name, version, state, tenant, key, queue, acceptedAt, expiresAt, endedAt, dueAt },
    isStopping: stop !== undefined && state !== 'stopped',
    says: parked?.message ?? stop?.message,
  });
}

function stepOf(step: StoredStep) {
  const { path, kind, state, order, attempts, at, dueAt, result, error, because, story } = step;
  return plain({
    ...{ path, kind, state, order, attempts, at, dueAt, because },
    result: result === undefined ? undefined : textOf(result),
    error: error && `${error.type}: ${error.message}`,
    story: story?.map((each) => ({ ...each })),
  });
}

/** Longer texts are cut to this many characters. */
const shownMax = 64 * 1024;

function textOf(payload: Payload): string {
  const text = typeof payload === 'string' ? payload : `${payload.length} bytes`;
  return text.length > shownMax ? `${text.slice(0, shownMax)}…` : text;
}

import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Field, Table } from 'holdfast/fields';
import { beforeAll, describe, expect, test } from 'vitest';
import { fieldNotes } from '../packages/core/src/policy/field-notes.ts';
import { allOptionsTable } from '../packages/core/test/doc-tables.ts';
import { gracefulShutdownFields } from '../packages/server/src/health/graceful-shutdown.ts';
import { healthFields } from '../packages/server/src/health/health.ts';
import { idempotencyFields } from '../packages/server/src/idempotency/idempotency.ts';
import { hardenFields } from '../packages/server/src/node/harden.ts';
import { bulkheadFields } from '../packages/server/src/overload/bulkhead.ts';
import { deadlineFields } from '../packages/server/src/overload/deadline.ts';
import { degradeFields } from '../packages/server/src/overload/degrade.ts';
import { shedFields } from '../packages/server/src/overload/shed.ts';
import { packagingFields } from '../packages/server/src/packaging.ts';
import { rateLimitFields } from '../packages/server/src/rate-limit/rate-limit.ts';
import { capture, root, script } from './command.ts';
import { type OptionHover, optionHovers, shownAt, typosIn } from './option-hovers.ts';
import { defaultText, optionsPage, optionText, policyFields, policyHovers, policyNotes } from './options.ts';

let hovers: OptionHover[] = [];

// What a user sees is what the build wrote, so it must be of these sources.
beforeAll(async () => {
  await capture(script('scripts/build.ts'));
  hovers = optionHovers();
}, 120_000);

const oneLine = (text: string) => text.replaceAll(/\s+/g, ' ').trim();
const nameOf = (each: OptionHover) => `${each.package} ${each.owner} ${each.path}`;

describe('in an editor, every option', () => {
  test('has a hover text', () => {
    expect(hovers.length).toBeGreaterThan(400);
    expect(hovers.filter(({ text }) => text === '').map(nameOf)).toEqual([]);
  });

  test('says its default, or that it is required', () => {
    expect(hovers.filter(({ text }) => !optionText(text)).map(nameOf)).toEqual([]);
  });

  test('that is a time says so: its type is a Duration, or its name or text has the unit', () => {
    const times = hovers.filter(
      ({ text, type }) => /^number\b/.test(type) && /\b(how long|this time|longest)\b/i.test(text),
    );
    const silent = times.filter(
      ({ path: at, text }) => !/Ms$/.test(at) && !/\b(ms|seconds|days)\b/.test(text),
    );
    expect(silent.map(nameOf)).toEqual([]);
  });
});

describe('the options of a policy', () => {
  test('are the same in the tables and in the types', () => {
    const paths = [...policyHovers(hovers).keys()].filter((at) => at !== 'name');
    expect(paths.toSorted()).toEqual([...policyFields().keys()].toSorted());
  });

  test('have the same text in an editor, in JSON Schema and in the docs', () => {
    expect(policyNotes(hovers)).toEqual(fieldNotes);
  });

  test('say the default of the tables', () => {
    const shown = policyHovers(hovers);
    expect(wrongDefaults(policyFields(), (at) => shown.get(at)?.text)).toEqual([]);
  });
});

describe('the options of a server', () => {
  test.each<[owner: string, table: Table]>([
    ['RateLimitOptions', rateLimitFields],
    ['ShedOptions', shedFields],
    ['BulkheadOptions', bulkheadFields],
    ['DeadlineOptions', deadlineFields],
    ['DegradeOptions', degradeFields],
    ['HealthOptions', healthFields],
    ['PackagingOptions', packagingFields],
    ['IdempotencyOptions', idempotencyFields],
    ['GracefulShutdownOptions', gracefulShutdownFields],
    ['HardenOptions', hardenFields],
  ])('%s say the default of their table', (owner, table) => {
    const its = new Map(hovers.filter((each) => each.owner === owner).map((each) => [each.path, each.text]));
    expect(its.size).toBeGreaterThan(0);
    expect(wrongDefaults(new Map(Object.entries(table)), (at) => its.get(at))).toEqual([]);
  });
});

describe('the language server shows', () => {
  test('the text of every option of a policy, in a call of policy()', async () => {
    const options = [...policyHovers(hovers)];
    const shown = await shownAt(
      'holdfast',
      'policy',
      options.map(([at]) => at),
    );
    const missing = options.filter(([, { text }], index) => !oneLine(shown[index]!).endsWith(text));
    expect(missing.map(([at]) => at)).toEqual([]);
  }, 60_000);

  test('the text of an option in a policy of chosen parts', async () => {
    const options = policyHovers(hovers);
    const keys = ['name', 'attempts', 'retryOn', 'breaker', 'breaker.probes'];
    const call = 'definePolicy([retry, breaker, network])';
    const shown = await shownAt('holdfast', 'definePolicy, retry, breaker, network', keys, call);
    const missing = keys.filter((at, index) => !oneLine(shown[index]!).endsWith(options.get(at)!.text));
    expect(missing).toEqual([]);
  }, 60_000);

  test.each([
    ['@holdfast/http', 'createFetch', 'FetchOptions'],
    ['@holdfast/server', 'rateLimit', 'RateLimitOptions'],
    ['@holdfast/server', 'idempotency', 'IdempotencyOptions'],
    ['@holdfast/events', 'consumer', 'ConsumerOptions'],
    ['@holdfast/sqlite', 'openSqlite', 'SqliteOptions'],
    ['@holdfast/postgres', 'openPostgres', 'PostgresOptions'],
  ])(
    '%s: the text of every option in a call of %s()',
    async (entry, name, owner) => {
      const options = hovers.filter((each) => each.package === entry && each.owner === owner);
      expect(options.length).toBeGreaterThan(0);
      const shown = await shownAt(
        entry,
        name,
        options.map((each) => each.path),
      );
      const missing = options.filter(({ text }, index) => !oneLine(shown[index]!).endsWith(text));
      expect(missing.map(nameOf)).toEqual([]);
    },
    60_000,
  );
});

test('a typo is told with the name of the type', () => {
  expect(
    typosIn([
      `import { policy } from 'holdfast'; policy({ patiance: '1s' });`,
      `import { policy } from 'holdfast'; policy({ breaker: { probe: 1 } });`,
      `import { createFetch } from '@holdfast/http'; createFetch({ polcy: {} });`,
      `import { createFetch } from '@holdfast/http'; createFetch({ policy: { patiance: '3s' } });`,
      `import { createFetch } from '@holdfast/http'; createFetch({ policy: { breaker: { probe: 1 } } });`,
      `import { rateLimit } from '@holdfast/server'; rateLimit({ limit: { rate: '1/s' } });`,
    ]),
  ).toEqual([
    expect.stringMatching(/'patiance' does not exist in type 'PolicySpec'/),
    expect.stringMatching(/'probe' does not exist in type 'BreakerSpec'/),
    expect.stringMatching(/'polcy' does not exist in type 'FetchOptions<PolicySpec>'.*'policy'/),
    expect.stringMatching(/^Object literal .*'patiance' does not exist in type .*PolicySpec.*'patience'/),
    expect.stringMatching(/'probe' does not exist in type 'BreakerSpec'.*'probes'/),
    expect.stringMatching(/'limit' does not exist in type 'RateLimitOptions'/),
  ]);
});

test('docs/options.md is what `npm run options` writes', () => {
  const page = readFileSync(path.join(root, 'docs/options.md'), 'utf8');
  expect(page).toBe(optionsPage(hovers, allOptionsTable()));
});

/** Options whose text gives another default than their table does. A size may be told in words as well. */
function wrongDefaults(
  fields: ReadonlyMap<string, Field>,
  textOf: (at: string) => string | undefined,
): string[] {
  return [...fields].flatMap(([at, field]) => {
    const wanted = defaultText(field);
    const told = optionText(textOf(at) ?? '')?.default?.replace(/ \(.+\)$/, '');
    return wanted === undefined || wanted === told || wanted.includes('[object')
      ? []
      : [`${at}: ${told}, not ${wanted}`];
  });
}

import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { versionsText } from '../../scripts/comparison.ts';
import { service, titled } from '../../scripts/services/service.ts';
import { cellOf, isGood, type Servers } from '../comparison/claim.ts';
import { cellIn } from '../comparison/table.ts';
import { themes } from '../comparison/themes.ts';
import { freshDatabase, type RunTrial, trialRunner, trialsOf } from '../comparison/trial-runner.ts';

const page = readFileSync(path.join(import.meta.dirname, '../../docs/comparison.md'), 'utf8');
const HOW = '"npm run comparison" writes the tables anew';

const [redis, postgres] = await Promise.all([service('redis'), service('postgres')]);
const missing = { redis, postgres };
const servers: { -readonly [Key in keyof Servers]?: Servers[Key] } = {};
let database: Awaited<ReturnType<typeof freshDatabase>> | undefined;

beforeAll(async () => {
  if (redis.missing === undefined) servers.redisUrl = redis.url;
  if (postgres.missing !== undefined) return;
  database = await freshDatabase(postgres.url);
  servers.postgresUrl = database.url;
});
afterAll(() => database?.drop());

test('the page names the versions that are tried', () => {
  expect(page, HOW).toContain(versionsText());
});

describe.each(themes)('the comparison of $name', (theme) => {
  let run: RunTrial;
  beforeAll(() => {
    run = trialRunner(theme, servers);
  });

  for (const claim of theme.claims) {
    describe(claim.sentence, () => {
      for (const name of trialsOf(theme, claim)) {
        const { label, needs, packages } = theme.contestants[name]!;
        const server = needs ? missing[needs] : { missing: undefined };
        test.skipIf(server.missing)(
          titled(`the page says what ${label} does`, server),
          { timeout: 40_000 },
          async () => {
            const observed = await run(claim, name);
            if (packages.length === 0) expect(isGood(claim, observed), `observed: ${observed}`).toBe(true);
            expect(cellIn(page, theme, claim, name), `${claim.id}: ${HOW}`).toBe(cellOf(claim, observed));
          },
        );
      }
    });
  }
});

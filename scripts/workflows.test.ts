import { existsSync, globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { root } from './command.ts';
import { releaseComplaints } from './release-version.ts';

const files = globSync('.github/**/*.yml', { cwd: root });
const textOf = (file: string) => readFileSync(path.join(root, file), 'utf8');

test.each(files)('%s is YAML', (file) => {
  expect(parse(textOf(file))).toBeTypeOf('object');
});

interface Step {
  readonly uses?: string;
  readonly run?: string;
  readonly with?: Readonly<Record<string, unknown>>;
}

interface Workflow {
  readonly on: Readonly<Record<string, unknown>>;
  readonly permissions: object;
  readonly jobs: Readonly<
    Record<
      string,
      {
        readonly 'timeout-minutes'?: number;
        readonly permissions?: object;
        readonly strategy?: { readonly matrix: Readonly<Record<string, readonly unknown[]>> };
        readonly steps: readonly Step[];
      }
    >
  >;
}

const workflow = (name: string) => parse(textOf(`.github/workflows/${name}.yml`)) as Workflow;
const runsOf = ({ jobs }: Workflow) =>
  Object.values(jobs).flatMap(({ steps }) => steps.flatMap(({ run = '' }) => run));

describe.each(['ci', 'mutate', 'release'])('the workflow %s', (name) => {
  const { permissions, jobs } = workflow(name);
  const steps = Object.values(jobs).flatMap((job) => job.steps);

  test('pins its actions by commit, with the version beside it', () => {
    const uses = textOf(`.github/workflows/${name}.yml`).match(/uses:.*$/gm) ?? [];
    expect(uses.length).toBeGreaterThan(0);
    expect(uses.filter((line) => !/@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(line))).toEqual([]);
  });

  test('may read, and only the release may sign', () => {
    expect(permissions).toEqual({ contents: 'read' });
    const more = Object.entries(jobs).flatMap(([job, its]) =>
      its.permissions ? [[job, its.permissions]] : [],
    );
    expect(more).toEqual(name === 'release' ? [['publish', { contents: 'read', 'id-token': 'write' }]] : []);
  });

  test('keeps no credentials in the checkout, and ends in time', () => {
    const checkouts = steps.filter(({ uses = '' }) => uses.startsWith('actions/checkout@'));
    expect(checkouts).toHaveLength(Object.keys(jobs).length);
    for (const each of checkouts) expect(each.with).toEqual({ 'persist-credentials': false });
    for (const job of Object.values(jobs)) expect(job['timeout-minutes']).toBeGreaterThan(0);
  });

  test('calls only scripts and files that exist, and puts nothing of an event into a shell', () => {
    const { scripts } = JSON.parse(textOf('package.json')) as { scripts: Record<string, string> };
    const runs = runsOf(workflow(name));
    const called = runs.flatMap((run) => [...run.matchAll(/\bnpm (?:run )?(?!ci\b|publish\b)([\w-]+)/g)]);
    expect(called.map(([, script]) => script!).filter((script) => !(script in scripts))).toEqual([]);
    const paths = runs.flatMap((run) => [
      ...run.matchAll(/(?:^|\s)((?:scripts|packages|engines)\/[\w./-]+)/g),
    ]);
    expect(paths.map(([, file]) => file!).filter((file) => !existsSync(path.join(root, file)))).toEqual([]);
    expect(runs.filter((run) => run.includes('${{'))).toEqual([]);
  });
});

test('what users install is tested on three systems with the oldest Node of its `engines` and with the newest', () => {
  const { matrix } = workflow('ci').jobs.packages!.strategy!;
  expect(matrix).toEqual({
    os: ['ubuntu-latest', 'macos-latest', 'windows-latest'],
    node: ['22.19', '24'],
  });
  const promised = globSync('{packages,engines}/*/package.json', { cwd: root }).map(
    (file) => JSON.parse(textOf(file)).engines.node as string,
  );
  expect(new Set(promised)).toEqual(new Set(['>=22.19', '>=22.22.0 <23 || >=24.6.0']));
  // The tools of node_modules would start the Node that is pinned there, whatever the matrix says.
  const [tests] = workflow('ci').jobs.packages!.steps.flatMap(({ run = '' }) =>
    /vitest/.test(run) ? run : [],
  );
  expect(tests).toMatch(/^node node_modules\/vitest\/vitest\.mjs run /);
});

test('a release has provenance, follows a tag, and checks its version first', () => {
  const release = workflow('release');
  expect(release.on).toEqual({ push: { tags: ['v*'] } });
  const runs = runsOf(release);
  expect(runs.at(-1)).toMatch(/^npm publish --workspaces .*--provenance/);
  expect(runs.findIndex((run) => run.includes('release-version.ts'))).toBeGreaterThan(-1);
  const manifests = globSync('{packages,engines}/*/package.json', { cwd: root });
  const published = manifests.map((file) => JSON.parse(textOf(file)));
  expect(published.filter((each) => !each.private && !each.publishConfig?.provenance)).toEqual([]);
});

test('mutation tests run on a schedule', () => {
  const { on } = workflow('mutate');
  expect(on.schedule).toEqual([{ cron: expect.stringMatching(/^\d+ \d+ \* \* [0-6]$/) }]);
});

test('Dependabot looks after packages and actions', () => {
  const { updates } = parse(textOf('.github/dependabot.yml')) as { updates: Record<string, string>[] };
  expect(updates.map((each) => each['package-ecosystem'])).toEqual(['npm', 'github-actions']);
});

test('there are templates for issues and for pull requests', () => {
  for (const name of ['bug', 'idea']) {
    const form = parse(textOf(`.github/ISSUE_TEMPLATE/${name}.yml`)) as { body: { id?: string }[] };
    const ids = form.body.flatMap(({ id }) => id ?? []);
    expect(ids.length).toBeGreaterThan(0);
    expect(new Set(ids).size).toBe(ids.length);
  }
  expect(textOf('.github/pull_request_template.md')).toContain('npm run check');
});

test('every version of the changelog has a date, or says that it is not released', () => {
  const headings = textOf('CHANGELOG.md').match(/^## .+$/gm) ?? [];
  expect(headings[0]).toBe('## Unreleased');
  const rest = headings.slice(1);
  expect(rest.length).toBeGreaterThan(0);
  expect(
    rest.filter((each) => !/^## \d+\.\d+\.\d+ – (\d{4}-\d{2}-\d{2}|not released yet)$/.test(each)),
  ).toEqual([]);
});

test('a release is refused if a version or the changelog differs from its tag', () => {
  const versions = new Map([
    ['holdfast', '0.1.0'],
    ['@holdfast/http', '0.1.1'],
  ]);
  expect(releaseComplaints('v0.1.0', versions, '## Unreleased')).toEqual([
    '@holdfast/http has version 0.1.1, and the tag says 0.1.0.',
    'CHANGELOG.md has no part "## 0.1.0".',
  ]);
  expect(releaseComplaints('v0.1.0', new Map([['holdfast', '0.1.0']]), '## 0.1.0 – 2026')).toEqual([]);
  expect(releaseComplaints('nightly', versions, '')).toEqual(['"nightly" is no version such as v0.1.0.']);
});

import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { type PolicySpec, policy } from 'holdfast';
import { virtualClock } from 'holdfast/testing';
import { describe, expect, test, vi } from 'vitest';
import { patternRuns } from '../drills/pattern-plots.ts';
import { forEver } from '../drills/patterns/dead-letter.ts';
import { inStep } from '../drills/patterns/jitter.ts';
import { patternIndex } from '../drills/patterns/pattern-index.ts';
import { figuresIn, type PatternRun, rendered } from '../drills/patterns/pattern-run.ts';
import { everyFiftyMs } from '../drills/patterns/rate-limiting.ts';
import { atOnce } from '../drills/patterns/retry-with-backoff.ts';
import { handle } from '../examples/snippets/src/patterns/dead-letter-bad.ts';
import { connect } from '../examples/snippets/src/patterns/jitter-bad.ts';
import { locate } from '../examples/snippets/src/patterns/rate-limiting-bad.ts';
import { product } from '../examples/snippets/src/patterns/retry-with-backoff-bad.ts';
import { root } from './command.ts';

const docs = path.join(root, 'docs');
const snippets = path.join(root, 'examples/snippets/src/patterns');
const names = Object.keys(patternRuns);
const pageOf = (name: string) => readFileSync(path.join(docs, `patterns/${name}.md`), 'utf8');
const HOW = 'run "npm run -s drill -- pattern-plots" and read the page again';

const runs = new Map<string, PatternRun>();

/** Compares each text of a run with the page: first its figures by name, then all of it. */
function expectSaid(page: string, run: PatternRun): void {
  const said = rendered(run);
  for (const [mark, text] of Object.entries(run.texts)) {
    const figures = figuresIn(page, mark, text);
    expect(figures, `the words of "${mark}" are others: ${HOW}`).toBeDefined();
    for (const [name, figure] of Object.entries(figures!))
      expect(figure, `{${name}} of "${mark}" is no longer true: ${HOW}`).toBe(run.figures[name]);
    expect(page).toContain(`<!-- ${mark} -->\n\n${said[mark]}\n\n<!-- end of ${mark} -->`);
  }
}

describe('the pages about patterns', () => {
  test('are one for each run, and the index links to all of them', () => {
    const pages = readdirSync(path.join(docs, 'patterns')).filter((file) => file !== 'README.md');
    expect(pages.toSorted()).toEqual(names.map((name) => `${name}.md`).toSorted());
    const index = pageOf('README');
    expect(names.filter((name) => !index.includes(`(${name}.md)`))).toEqual([]);
  });

  test('have no plot that nothing draws', () => {
    const plots = readdirSync(path.join(docs, 'plots/patterns'));
    expect(plots.toSorted()).toEqual(names.map((name) => `${name}.svg`).toSorted());
  });

  test.each(names)('%s shows its code as the tests run it', (name) => {
    const page = pageOf(name);
    const files = ['bad', 'good'].map((which) => path.join(snippets, `${name}-${which}.ts`));
    const blocks = Array.from(page.matchAll(/^```ts\n([\s\S]*?)^```$/gm), ([, code]) => code);
    expect(blocks).toEqual(files.map((file) => readFileSync(file, 'utf8')));
  });

  test.each(names)(
    '%s names figures that are true, beside the plot of the same run',
    { timeout: 120_000 },
    async (name) => {
      const run = await patternRuns[name]!();
      runs.set(name, run);
      const page = pageOf(name);
      expectSaid(page, run);
      for (const [file, svg] of Object.entries(run.plots)) {
        expect(page).toContain(`(../plots/patterns/${file}.svg)`);
        const drawn = readFileSync(path.join(docs, `plots/patterns/${file}.svg`), 'utf8');
        expect(drawn === svg, `docs/plots/patterns/${file}.svg is not the plot of this run: ${HOW}`).toBe(
          true,
        );
      }
    },
  );

  test('the index names figures that are true', { timeout: 120_000 }, async () => {
    for (const name of names) if (!runs.has(name)) runs.set(name, await patternRuns[name]!());
    expectSaid(pageOf('README'), patternIndex(runs));
  });
});

test('a figure that was changed on a page is found', () => {
  const run = { plots: {}, texts: { caption: '*It takes {time} s.*' }, figures: { time: '2' } };
  const page = (text: string) => `<!-- caption -->\n\n${text}\n\n<!-- end of caption -->`;
  expect(() => expectSaid(page('*It takes 2 s.*'), run)).not.toThrow();
  expect(() => expectSaid(page('*It takes 3 s.*'), run)).toThrow('{time} of "caption" is no longer true');
  expect(() => expectSaid(page('*It took 2 s.*'), run)).toThrow('the words of "caption" are others');
});

/** The policy that stands for an anti-pattern in the simulator does what its code does. */
describe('an anti-pattern by hand and its policy', () => {
  const CALLS = 4;
  const failed = (fields: object) => Object.assign(new Error('failed'), fields);

  /** When the hand-written code calls, on faked timers. The last of `CALLS` calls succeeds. */
  async function byHand(run: (call: () => boolean) => Promise<unknown>): Promise<number[]> {
    vi.useFakeTimers({ toFake: ['setTimeout', 'Date'] });
    try {
      const startedAt = Date.now();
      const times: number[] = [];
      const running = run(() => times.push(Date.now() - startedAt) < CALLS);
      await vi.advanceTimersByTimeAsync(60_000);
      await running;
      return times;
    } finally {
      vi.useRealTimers();
      vi.unstubAllGlobals();
    }
  }

  async function byPolicy(spec: PolicySpec, error: Error): Promise<number[]> {
    const clock = virtualClock();
    const times: number[] = [];
    const running = policy(spec, { clock }).run(async () => {
      if (times.push(clock.now()) < CALLS) throw error;
    });
    await clock.advance('1m');
    await running;
    return times;
  }

  test.each<[string, PolicySpec, Error, (isFailing: () => boolean) => Promise<unknown>]>([
    [
      'retry-with-backoff',
      atOnce,
      failed({ code: 'ECONNRESET' }),
      (isFailing) => {
        vi.stubGlobal('fetch', async () => {
          if (isFailing()) throw failed({ code: 'ECONNRESET' });
          return new Response('ok');
        });
        return product('1');
      },
    ],
    [
      'jitter',
      inStep,
      failed({ code: 'ECONNRESET' }),
      (isFailing) =>
        connect(async () => {
          if (isFailing()) throw failed({ code: 'ECONNRESET' });
          return 'connected';
        }),
    ],
    [
      'rate-limiting',
      everyFiftyMs,
      failed({ status: 429 }),
      (isFailing) => {
        const status = () => (isFailing() ? 429 : 200);
        vi.stubGlobal(
          'fetch',
          async () => new Response('', { status: status(), headers: { 'retry-after': '1' } }),
        );
        return locate('here');
      },
    ],
    [
      'dead-letter',
      forEver,
      failed({}),
      (isFailing) =>
        handle({ weight: 1 }, async () => {
          if (isFailing()) throw failed({});
        }),
    ],
  ])('%s make their calls at the same times', async (_name, spec, error, run) => {
    const times = await byHand(run);
    expect(times).toHaveLength(CALLS);
    expect(await byPolicy(spec, error)).toEqual(times);
  });
});

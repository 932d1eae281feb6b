import type { RateTake } from '../rate-limits.ts';
import { ensure, expectLike } from './assertions.ts';
import { type Check, checksOf, type Stage } from './stage.ts';

const check = checksOf(['rateLimits']);

export const rateLimitChecks: readonly Check[] = [
  check('lets the burst pass, then the rate', [], async (stage) => {
    const limit = limitOf(stage, 3);
    const answers = await stage.rateLimits.take([[limit], [limit], [limit], [limit]]);
    expectLike(
      answers.map(({ allowed }) => allowed),
      [true, true, true, false],
      'three at once',
    );
    const { waitMs, left } = answers[3]!;
    ensure(waitMs > 0 && waitMs <= 4 * stage.unitMs, 'it says how long to wait');
    ensure(left[0]!.tokens < 1, 'and that nothing is left');
    await stage.pass(5);
    const later = await stage.rateLimits.take([[limit], [limit]]);
    expectLike(
      later.map(({ allowed }) => allowed),
      [true, false],
      'one more after a while',
    );
  }),

  check('takes from all limits of a request or from none', [], async (stage) => {
    const [wide, narrow] = [limitOf(stage, 5), limitOf(stage, 1)];
    await stage.rateLimits.take([[narrow]]);
    const [refused] = await stage.rateLimits.take([[wide, narrow]]);
    expectLike(refused?.allowed, false, 'one of them refuses');
    const [look] = await stage.rateLimits.take([[{ ...wide, cost: 0 }]]);
    ensure(look!.left[0]!.tokens > 4.5, 'nothing was taken from the other');
    const [five] = await stage.rateLimits.take([[{ ...wide, cost: 5 }]]);
    expectLike(five?.allowed, true, 'all of it is there');
  }),

  check('never lets more than the burst pass at once', [], async (stage) => {
    const limit = limitOf(stage, 3);
    const [never] = await stage.rateLimits.take([[{ ...limit, cost: 4 }]]);
    expectLike(never, { allowed: false, waitMs: Infinity }, 'waiting does not help');
    const answers = await Promise.all(Array.from({ length: 20 }, () => stage.rateLimits.take([[limit]])));
    expectLike(answers.filter(([answer]) => answer!.allowed).length, 3, 'of many at once');
  }),

  check('limits by any text', [], async (stage) => {
    for (const text of ['a\0b', 'a\ufffdb', 'a\\u0000b', '\u{1f600}']) {
      const take = { key: stage.name(text), ratePerMs: 1 / (1000 * stage.unitMs), burst: 1 };
      const answers = await stage.rateLimits.take([[take], [take]]);
      expectLike(
        answers.map(({ allowed }) => allowed),
        [true, false],
        JSON.stringify(text),
      );
      await stage.rateLimits.forget([take.key]);
      expectLike((await stage.rateLimits.take([[take]]))[0]?.allowed, true, 'forgotten');
    }
  }),

  check('keeps keys apart, and forgets them on request', [], async (stage) => {
    const [a, b] = [limitOf(stage, 1), limitOf(stage, 1)];
    const allowed = async (limit: RateTake) => (await stage.rateLimits.take([[limit]]))[0]!.allowed;
    expectLike(
      [await allowed(a), await allowed(a), await allowed(b)],
      [true, false, true],
      'each has its own',
    );
    await stage.rateLimits.forget([a.key]);
    expectLike([await allowed(a), await allowed(b)], [true, false], 'one was forgotten');
  }),
];

/** Returns a limit of one request per 4 time units, with a burst of `burst` requests. */
function limitOf(stage: Stage, burst: number): RateTake {
  return { key: stage.name('key'), ratePerMs: 1 / (4 * stage.unitMs), burst };
}

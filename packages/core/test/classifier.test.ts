import { describe, expect, expectTypeOf, test } from 'vitest';
import { any } from '../src/classify/any.ts';
import { combine, packsOf, type RetryOn } from '../src/classify/classifier.ts';
import { http } from '../src/classify/http.ts';
import { markOf, permanent, retryAfter, transient } from '../src/classify/marks.ts';
import { network } from '../src/classify/network.ts';
import { sql } from '../src/classify/sql.ts';
import type { Judgement, Outcome } from '../src/decide/outcome.ts';
import { tellStory } from '../src/explain.ts';
import { retry } from '../src/parts/retry.ts';
import { policy } from '../src/policy/all-parts.ts';
import { definePolicy } from '../src/policy/policy.ts';
import { scripted, virtualClock } from '../src/testing.ts';

const reset = () => Object.assign(new Error('reset'), { code: 'ECONNRESET' });

function setup(
  retryOn: RetryOn[] = ['network', 'http'],
  neverOn: (new (...args: never[]) => unknown)[] = [],
) {
  const { classify, judgesValues } = combine(packsOf({ retryOnly: retryOn }, [network, http, any]), neverOn);
  const judge = (outcome: Outcome): Judgement => {
    const judged = classify(outcome, () => 0);
    return typeof judged === 'object' ? judged : { class: judged ?? 'ignored' };
  };
  return {
    judgesValues,
    thrown: (error: unknown) => judge({ ok: false, error }),
    returned: (value: unknown) => judge({ ok: true, value }),
  };
}

describe('combining', () => {
  test('the first that answers wins', () => {
    const { thrown } = setup([() => 'fatal', 'any']);
    expect(thrown(reset()).class).toBe('fatal');
    expect(setup(['any', () => 'fatal']).thrown(reset()).class).toBe('fatal');
    expect(setup([() => undefined, network]).thrown(reset()).class).toBe('transient');
  });

  test('what nobody knows is not retried: unknown errors are fatal, unknown values are good', () => {
    const { thrown, returned } = setup();
    for (const unknown of [new Error('x'), new TypeError('bug'), 'text', undefined, null, 7]) {
      expect(thrown(unknown).class).toBe('fatal');
      expect(returned(unknown).class).toBe('ok');
    }
    expect(setup([]).thrown(reset()).class).toBe('fatal');
  });

  test('says whether values are judged at all', () => {
    expect(setup(['network', 'any']).judgesValues).toBe(0);
    expect(setup(['network', 'http']).judgesValues).toBe(1);
    expect(setup([() => undefined]).judgesValues).toBe(2);
    expect(setup([]).judgesValues).toBe(0);
  });

  test('values are shown to those who judge them', () => {
    const seen: Outcome[] = [];
    const { returned } = setup([
      'any',
      (outcome) => {
        seen.push(outcome);
        return outcome.ok && outcome.value === 'empty' ? 'transient' : undefined;
      },
    ]);
    expect(returned('empty').class).toBe('transient');
    expect(returned('full').class).toBe('ok');
    expect(seen.length).toBe(2);
  });

  test('a pack that needs itself keeps itself', () => {
    const pack = {
      pack: 'mine',
      kind: 'throttled' as const,
      classify() {
        return this.kind;
      },
    };
    expect(setup([pack]).thrown(reset()).class).toBe('throttled');
  });

  test.each([['netwrok'], [''], [null], [{}], [{ pack: 'x' }]])('%j is refused by name', (wrong) => {
    expect(() => setup(['network', wrong as RetryOn])).toThrow(
      /^retryOnly\[1\]: expected network, http, any, a pack or/,
    );
  });

  test('a class of errors is refused, and the message shows the function to give', () => {
    class Busy extends Error {}
    expect(() => setup([Busy as never])).toThrow(
      /^retryOnly\[0\]: expected network, http, any, a pack or a function: \(outcome\) => outcome.error instanceof Busy \? 'transient' : undefined, got class Busy/,
    );
    expect(() => policy({ retryOn: [Busy as never] })).toThrow('retryOn[0]: expected network, http');
  });

  test('a classifier that throws ends the retries and is reported', () => {
    const { thrown, returned } = setup([
      () => {
        throw new Error('my mistake');
      },
      'any',
    ]);
    const report = { unreadableHint: 'a classifier threw my mistake' };
    expect(thrown(reset())).toEqual({ class: 'fatal', ...report });
    expect(returned(1)).toEqual({ class: 'ok', ...report });
    const odd = setup([
      () => {
        throw Object.create(null);
      },
    ]);
    expect(odd.thrown(reset()).class).toBe('fatal');
  });

  test('an error that cannot be looked at is fatal', () => {
    const hostile = new Proxy(new Error('x'), {
      get() {
        throw new Error('hostile');
      },
      getPrototypeOf() {
        throw new Error('hostile');
      },
    });
    expect(setup(['network', 'http'], [TypeError]).thrown(hostile).class).toBe('fatal');
  });
});

describe('which packs are asked', () => {
  const own = { pack: 'own', classify: () => undefined };
  const named = (said: Parameters<typeof packsOf>[0]) =>
    packsOf(said, [network, http, sql, any]).map(({ pack }) => pack);

  test('retryOn adds: what it names is asked before network and http', () => {
    expect(named({})).toEqual(['network', 'http']);
    expect(named({ retryOn: ['sql'] })).toEqual(['sql', 'network', 'http']);
    expect(named({ retryOn: [own, () => undefined] })).toEqual(['own', '', 'network', 'http']);
    expect(named({ retryOn: ['http', 'network', 'http'] })).toEqual(['http', 'network']);
  });

  test('retryOnly replaces', () => {
    expect(named({ retryOnly: ['sql'] })).toEqual(['sql']);
    expect(named({ retryOnly: [] })).toEqual([]);
  });

  test('any is asked last, wherever it is named, so that a 404 stays final', () => {
    expect(named({ retryOn: ['any', 'sql'] })).toEqual(['sql', 'network', 'http', 'any']);
    const notFound = Object.assign(new Error('no such order'), { status: 404 });
    const judged = (said: Parameters<typeof packsOf>[0]) =>
      combine(packsOf(said, [network, http, any]), []).classify({ ok: false, error: notFound }, () => 0);
    expect(judged({ retryOn: ['any'] })).toMatchObject({ class: 'fatal' });
    expect(judged({ retryOnly: ['any'] })).toBe('transient');
  });

  test('both at once are refused, and so is a name that no pack has', () => {
    expect(() => policy({ retryOn: 'sql', retryOnly: 'http' })).toThrow(
      'retryOnly: expected nothing beside retryOn, which adds to the packs',
    );
    // @ts-expect-error: pack names are types
    expect(() => policy({ retryOn: ['sqll'] })).toThrow(/^retryOn\[0\]: expected network, http, sql/);
    // @ts-expect-error: of a policy of chosen parts, the names of its own packs
    expect(() => definePolicy([retry, network])({ retryOn: 'http' })).toThrow('retryOn[0]');
  });

  test('with a database down, retryOn: sql retries refused connections', async () => {
    const clock = virtualClock();
    const refused = () => Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
    const operation = scripted(clock, refused(), refused(), 'up');
    const running = policy({ retryOn: ['sql'] }, { clock }).run(operation);
    await clock.advance('1s');
    expect(await running).toBe('up');
  });

  test('an error that nobody knows says so, and what to do about it', async () => {
    const { story } = await policy().try(() => Promise.reject(new Error('no luck')));
    expect(story.log[0]).toMatchObject({ class: 'fatal', unknown: true });
    expect(tellStory(story)).toContain(
      'stopped: not_retryable — no pack knows this error, so it is not tried again: if it is temporary, mark it with `transient(error)`, give it a `status` or a `code`, or name a pack in `retryOn`',
    );
    const known = await policy().try(() => Promise.reject(Object.assign(new Error('gone'), { status: 410 })));
    expect(tellStory(known.story)).toContain('another attempt would fail in the same way');
  });
});

describe('neverOn', () => {
  test('beats the packs, because it was said about this program', () => {
    const failed = new TypeError('fetch failed', { cause: reset() });
    expect(setup().thrown(failed).class).toBe('transient');
    expect(setup(['network'], [TypeError]).thrown(failed).class).toBe('fatal');
  });

  test('covers subclasses, and leaves others and values alone', () => {
    class Rejected extends RangeError {}
    const { thrown, returned } = setup(['any'], [RangeError]);
    expect(thrown(new Rejected()).class).toBe('fatal');
    expect(thrown(new Error()).class).toBe('transient');
    expect(returned(new Rejected()).class).toBe('ok');
  });
});

describe('marks', () => {
  test('beat packs and neverOn, and the last one counts', () => {
    const { thrown } = setup(['any'], [TypeError]);
    expect(thrown(permanent(new Error())).class).toBe('fatal');
    expect(thrown(transient(new TypeError())).class).toBe('transient');
    expect(thrown(transient(permanent(reset()))).class).toBe('transient');
    expect(thrown(permanent(transient(reset()))).class).toBe('fatal');
  });

  test('return the very object, with its type', () => {
    class Mine extends Error {
      readonly extra = 1;
    }
    const error = new Mine();
    expect(transient(error)).toBe(error);
    expect(permanent(error)).toBe(error);
    expect(retryAfter(error, 1)).toBe(error);
    expectTypeOf(transient(error)).toEqualTypeOf<Mine>();
    expectTypeOf(permanent('text')).toEqualTypeOf<Error>();
    const frozen = Object.freeze(new Error('frozen'));
    expect(markOf(permanent(frozen))).toEqual({ class: 'fatal' });
  });

  test('put a primitive into an error that has it as its cause', () => {
    for (const thrown of ['text', 7, null, undefined, Symbol('x')]) {
      const marked = permanent(thrown);
      expect(marked).toBeInstanceOf(Error);
      expect(marked).toMatchObject({ message: String(thrown), cause: thrown });
      expect(markOf(marked)).toEqual({ class: 'fatal' });
    }
  });

  test('say when to come back', () => {
    const { thrown } = setup();
    expect(thrown(retryAfter(new Error(), '2s'))).toEqual({ class: 'throttled', retryAfterMs: 2_000 });
    expect(thrown(retryAfter(new Error(), 250))).toMatchObject({ retryAfterMs: 250 });
    expect(thrown(retryAfter(new Error(), -5))).toMatchObject({ retryAfterMs: 0 });
    expect(() => retryAfter(new Error(), 'soon' as '1s')).toThrow('duration');
  });

  test('can promise that nothing was done', () => {
    expect(markOf(transient(new Error(), { unprocessed: true }))).toEqual({
      class: 'transient',
      unprocessed: true,
    });
    expect(markOf(transient(new Error()))).toEqual({ class: 'transient', unprocessed: false });
  });

  test('reach through the errors around them, the nearest first', () => {
    const { thrown } = setup(['any']);
    const inner = permanent(new Error('inner'));
    const around = new Error('outer', { cause: new Error('middle', { cause: inner }) });
    expect(thrown(around).class).toBe('fatal');
    transient(around);
    expect(thrown(around).class).toBe('transient');
  });

  test('are not looked for in circles or in what is no object', () => {
    const circle = new Error('a') as Error & { cause: unknown };
    circle.cause = circle;
    for (const error of [circle, 'text', undefined, null, 7, { cause: 'x' }])
      expect(markOf(error)).toBeUndefined();
  });
});

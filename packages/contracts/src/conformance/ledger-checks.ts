import type { Payload } from '../envelope.ts';
import type { Begun, Claim, Hold } from '../ledger.ts';
import { ensure, expectLike } from './assertions.ts';
import { type Check, checksOf, type Stage } from './stage.ts';

const check = checksOf(['ledger']);

export const ledgerChecks: readonly Check[] = [
  check('gives a key to one holder only', [], async (stage) => {
    const claim = claimOf(stage);
    const answers = await Promise.all(Array.from({ length: 10 }, () => stage.ledger.begin([claim])));
    const kinds = answers.map(([begun]) => begun!.kind).sort();
    expectLike(kinds, ['acquired', ...Array(9).fill('running')], 'one has it, the others wait');
    const [running] = await stage.ledger.begin([claim]);
    ensure(running?.kind === 'running' && running.retryAfterMs > 0, 'it says when to ask again');
    ensure(running.retryAfterMs <= claim.leaseMs, 'not later than the lease');
  }),

  check('keeps a key for ever', [], async (stage) => {
    const claim = { ...claimOf(stage), leaseMs: Infinity, keepMs: Infinity };
    const hold = await acquire(stage, claim);
    expectLike(await stage.ledger.begin([claim]), [{ kind: 'running' }], 'it is held');
    expectLike(await stage.ledger.extend([hold], Infinity), [true], 'it is extended');
    const completion = { hold, record: 'a', keepMs: Infinity };
    expectLike(await stage.ledger.complete([completion]), [{ took: true }], 'the completion');
    expectLike(await stage.ledger.begin([claim]), [{ kind: 'done', record: 'a' }], 'it is done');
  }),

  check('answers a batch item by item', [], async (stage) => {
    const [a, b] = [claimOf(stage), claimOf(stage)];
    const begun = await stage.ledger.begin([a, b, a]);
    expectLike(
      begun.map(({ kind }) => kind),
      ['acquired', 'acquired', 'running'],
      'an item sees those before it',
    );
    const hold = await acquire(stage, claimOf(stage));
    expectLike(await stage.ledger.extend([hold, hold], a.leaseMs), [true, true], 'it is held');
    expectLike(await stage.ledger.release([hold, hold]), [true, false], 'and then it is not');
  }),

  check('returns the record of a completed key', [], async (stage) => {
    const records = ['{"status":201}', Uint8Array.from([0, 200, 10]), undefined];
    for (const record of records) {
      const claim = claimOf(stage);
      const hold = await acquire(stage, claim);
      const keepMs = 100 * stage.unitMs;
      expectLike(await stage.ledger.complete([{ hold, record, keepMs }]), [{ took: true }], 'the completion');
      const [done] = await stage.ledger.begin([claim]);
      ensure(done?.kind === 'done', 'it is done');
      ensure(typeof done.record === typeof record, 'text as text, bytes as bytes, nothing as nothing');
      const bytes = (value: Payload | undefined) => (value instanceof Uint8Array ? Array.from(value) : value);
      expectLike(bytes(done.record), bytes(record), 'the record');
    }
  }),

  check(
    'answers another fingerprint with mismatch, running or done, and reveals nothing',
    [],
    async (stage) => {
      const claim = claimOf(stage);
      const other = { ...claim, fingerprint: 'another body' };
      const hold = await acquire(stage, claim);
      expectLike(await stage.ledger.begin([other]), [{ kind: 'mismatch' }], 'while it runs');
      await stage.ledger.complete([{ hold, record: 'secret', keepMs: 100 * stage.unitMs }]);
      expectLike(await stage.ledger.begin([other]), [{ kind: 'mismatch' }], 'when it is done');
    },
  ),

  check('says that the outcome is unknown when a lease was lost', [], async (stage) => {
    const claim = claimOf(stage, 2);
    await acquire(stage, claim);
    await stage.pass(3);
    expectLike(await stage.ledger.begin([claim]), [{ kind: 'unknown' }], 'its effect may have happened');
    expectLike(await stage.ledger.begin([claim]), [{ kind: 'unknown' }], 'and asking does not change that');
    const [taken] = await stage.ledger.begin([{ ...claim, whenLost: 'takeOver' }]);
    expectLike(taken, { kind: 'acquired', attempt: 2 }, 'a claim that may take over');
  }),

  check('refuses to complete, release or extend a lost hold', [], async (stage) => {
    const claim = { ...claimOf(stage, 2), whenLost: 'takeOver' as const };
    const zombie = await acquire(stage, claim);
    await stage.pass(3);
    const hold = await acquire(stage, { ...claim, leaseMs: 50 * stage.unitMs });
    const keepMs = 100 * stage.unitMs;
    const [refused] = await stage.ledger.complete([{ hold: zombie, record: 'late', keepMs }]);
    expectLike(refused, { took: false, because: 'lease_lost' }, 'a zombie cannot complete');
    expectLike(await stage.ledger.extend([zombie], keepMs), [false], 'nor extend');
    expectLike(await stage.ledger.release([zombie]), [false], 'nor release');
    expectLike(
      await stage.ledger.complete([{ hold, record: 'right', keepMs }]),
      [{ took: true }],
      'the holder can',
    );
    expectLike(await stage.ledger.begin([claim]), [{ kind: 'done', record: 'right' }], 'what is remembered');
  }),

  check('keeps a hold that is extended, longer than a key is remembered', [], async (stage) => {
    const scope = stage.name('scope');
    const claim = { ...claimOf(stage, 3), scope, keepMs: stage.unitMs, liveMax: 1 };
    const hold = await acquire(stage, claim);
    await stage.pass(2);
    expectLike(await stage.ledger.extend([hold], 10 * stage.unitMs), [true], 'the heartbeat counts');
    await stage.pass(3);
    expectLike((await stage.ledger.begin([claim]))[0]?.kind, 'running', 'it is still held');
    const other = { ...claim, key: stage.name('key') };
    expectLike(await stage.ledger.begin([other]), [{ kind: 'full' }], 'and is counted');
  }),

  check('forgets a key that is released', [], async (stage) => {
    const claim = claimOf(stage);
    const hold = await acquire(stage, claim);
    expectLike(await stage.ledger.release([hold]), [true], 'the release');
    expectLike(await stage.ledger.release([hold]), [false], 'only once');
    const [begun] = await stage.ledger.begin([{ ...claim, fingerprint: 'another body' }]);
    expectLike(begun, { kind: 'acquired', attempt: 1 }, 'as if never begun');
  }),

  check('forgets a completed key when its time is over', [], async (stage) => {
    const claim = claimOf(stage);
    const hold = await acquire(stage, claim);
    await stage.ledger.complete([{ hold, record: 'a', keepMs: 3 * stage.unitMs }]);
    await stage.pass(1);
    expectLike((await stage.ledger.begin([claim]))[0]?.kind, 'done', 'it is remembered');
    await stage.pass(3);
    expectLike((await stage.ledger.begin([claim]))[0]?.kind, 'acquired', 'it is forgotten');
  }),

  check('keeps scopes apart', [], async (stage) => {
    const claim = claimOf(stage);
    await acquire(stage, claim);
    await acquire(stage, { ...claim, scope: stage.name('other') });
  }),

  check('takes any text for a key', [], async (stage) => {
    const texts = ['a\0b', 'a\ufffdb', 'a\\u0000b', '"a\\u0000b"', 'a\\0b', '\u{1f600}'];
    for (const field of ['scope', 'key', 'fingerprint'] as const) {
      const claim = claimOf(stage);
      const claims = texts.map((text) => ({ ...claim, key: stage.name(field), [field]: claim.scope + text }));
      const kinds = (await stage.ledger.begin([...claims, ...claims])).map(({ kind }) => kind);
      const expected = ['acquired', 'running'].flatMap((kind) => texts.map(() => kind));
      expectLike(kinds, expected, `each ${field} is itself`);
    }
  }),

  check('caps the live keys of a scope', [], async (stage) => {
    const scope = stage.name('scope');
    const claims = ['c', 'a', 'b'].map((key) => ({ ...claimOf(stage), scope, key, liveMax: 2 }));
    const kinds = (await stage.ledger.begin(claims)).map(({ kind }) => kind);
    expectLike(kinds, ['acquired', 'acquired', 'full'], 'the third is one too many');
    await acquire(stage, { ...claimOf(stage), liveMax: 2 });
  }),

  check('forgets a whole scope, except for held keys', [], async (stage) => {
    const scope = stage.name('scope');
    const [done, plain, held] = ['done', 'plain', 'held'].map((key) => ({ ...claimOf(stage), scope, key }));
    const other = claimOf(stage);
    const keepMs = 100 * stage.unitMs;
    const holds = [
      await acquire(stage, { ...done!, liveMax: 10 }),
      await acquire(stage, plain!),
      await acquire(stage, other),
    ];
    await stage.ledger.complete(holds.map((hold) => ({ hold, record: 'secret', keepMs })));
    const hold = await acquire(stage, { ...held!, liveMax: 10 });
    expectLike(await stage.ledger.purge(scope), 2, 'two were done');
    expectLike(await stage.ledger.purge(scope), 0, 'and are gone');
    expectLike((await stage.ledger.begin([held!]))[0]?.kind, 'running', 'a held key stays');
    expectLike(await stage.ledger.release([hold]), [true], 'and can give it up');
    const [again] = await stage.ledger.begin([{ ...done!, fingerprint: 'another body' }]);
    expectLike(again, { kind: 'acquired', attempt: 1 }, 'as if never begun');
    expectLike((await stage.ledger.begin([other]))[0]?.kind, 'done', 'other scopes are not touched');
  }),

  check('marks each event once for each handler', [], async (stage) => {
    const eventId = stage.name('event');
    const [view, mail] = ['view@1', 'mail@1'].map((handler) => ({ handler, eventId }));
    expectLike(await stage.ledger.isMarked([view!, mail!]), [false, false], 'at first');
    expectLike(await stage.ledger.mark([view!, view!]), [true, false], 'the first only, also within a batch');
    expectLike(await stage.ledger.isMarked([view!, mail!]), [true, false], 'handlers are apart');
    const racers = await Promise.all(Array.from({ length: 8 }, () => stage.ledger.mark([mail!])));
    expectLike(racers.filter(([isFirst]) => isFirst).length, 1, 'one of many at once');
  }),

  check('remembers after a restart', ['durable', 'reopen'], async (stage) => {
    const [done, running] = [claimOf(stage), claimOf(stage)];
    const hold = await acquire(stage, done);
    await acquire(stage, running);
    await stage.ledger.complete([{ hold, record: 'a', keepMs: 100 * stage.unitMs }]);
    const mark = { handler: 'view@1', eventId: stage.name('event') };
    await stage.ledger.mark([mark]);
    await stage.reopen();
    const kinds = (await stage.ledger.begin([done, running])).map(({ kind }) => kind);
    expectLike(kinds, ['done', 'running'], 'keys');
    expectLike(await stage.ledger.isMarked([mark]), [true], 'marks');
  }),

  check('completes a key with its effect, or not at all', ['sharedTransaction', 'effect'], async (stage) => {
    const { effect } = stage.harness;
    ensure(effect, 'the harness has an effect');
    const claim = claimOf(stage);
    const hold = await acquire(stage, claim);
    const keepMs = 100 * stage.unitMs;
    const fail = (tx: unknown) => {
      const written = effect.write(tx, 'undone');
      if (!written) throw new Error('no');
      return written.then((): undefined => {
        throw new Error('no');
      });
    };
    const [failed] = await stage.ledger.complete([{ hold, record: undefined, keepMs, commit: fail }]);
    expectLike(failed, { took: false, because: 'commit_failed' }, 'a commit that throws');
    expectLike(await effect.isThere('undone'), false, 'leaves nothing');
    const commit = (tx: unknown) => {
      const written = effect.write(tx, 'done');
      return written ? written.then(() => 'answer') : 'answer';
    };
    expectLike(
      await stage.ledger.complete([{ hold, record: undefined, keepMs, commit }]),
      [{ took: true }],
      'then it can',
    );
    expectLike(await effect.isThere('done'), true, 'the effect');
    expectLike(
      await stage.ledger.begin([claim]),
      [{ kind: 'done', record: 'answer' }],
      'and what it answered',
    );
  }),

  check('completes in the order given, with an effect or without', ['sharedTransaction'], async (stage) => {
    const keepMs = 100 * stage.unitMs;
    const fail = () => {
      throw new Error('no');
    };
    const [first, second] = [await acquire(stage, claimOf(stage)), await acquire(stage, claimOf(stage))];
    const settled = await stage.ledger.complete([
      { hold: first, record: undefined, keepMs, commit: fail },
      { hold: first, record: 'plain', keepMs },
      { hold: second, record: undefined, keepMs, commit: () => 'committed' },
      { hold: second, record: 'plain', keepMs },
    ]);
    expectLike(
      settled.map(({ took, because }) => because ?? took),
      ['commit_failed', true, true, 'lease_lost'],
      'each sees what those before it did',
    );
  }),
];

function claimOf(stage: Stage, leaseUnits = 50): Claim {
  return {
    scope: `${stage.harness.prefix ?? ''}scope`,
    key: stage.name('key'),
    fingerprint: 'body',
    leaseMs: leaseUnits * stage.unitMs,
  };
}

async function acquire(stage: Stage, claim: Claim): Promise<Hold> {
  const [begun]: readonly (Begun | undefined)[] = await stage.ledger.begin([claim]);
  ensure(begun?.kind === 'acquired', `the key can be acquired, got ${begun?.kind}`);
  return begun.hold;
}

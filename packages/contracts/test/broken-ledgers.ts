import type { Ledger } from '@holdfast/contracts';
import type { MemoryStorage, MemoryTransaction } from '@holdfast/contracts/memory';
import type { BrokenEngine } from './broken-engine.ts';

function brokenLedger(
  fault: string,
  found: string,
  alter: (ledger: Ledger<MemoryTransaction>, storage: MemoryStorage) => Partial<Ledger<MemoryTransaction>>,
): BrokenEngine {
  return {
    fault,
    found,
    alter: (engine, storage) => ({
      ...engine,
      ledger: { ...engine.ledger, ...alter(engine.ledger, storage) },
    }),
  };
}

export const brokenLedgers: readonly BrokenEngine[] = [
  brokenLedger(
    'a completion without a compare',
    'refuses to complete, release or extend a lost hold',
    (ledger, storage) => ({
      complete: (completions) =>
        ledger.complete(
          completions.map(({ hold, ...completion }) => {
            const token = storage.keys.get(hold.scope, hold.key)?.token ?? hold.token;
            return { ...completion, hold: { ...hold, token } };
          }),
        ),
    }),
  ),
  brokenLedger(
    'a fingerprint that is not compared',
    'answers another fingerprint with mismatch, running or done, and reveals nothing',
    (ledger) => ({
      begin: (claims) => ledger.begin(claims.map((claim) => ({ ...claim, fingerprint: 'all alike' }))),
    }),
  ),
  brokenLedger(
    'a lost lease that is repeated unasked',
    'says that the outcome is unknown when a lease was lost',
    (ledger) => ({
      begin: (claims) => ledger.begin(claims.map((claim) => ({ ...claim, whenLost: 'takeOver' }))),
    }),
  ),
  brokenLedger(
    'a key that is looked up and then written',
    'gives a key to one holder only',
    (ledger, storage) => ({
      async begin(claims) {
        const known = claims.every(({ scope, key }) => storage.keys.get(scope, key) !== undefined);
        await Promise.resolve();
        if (!known) for (const { scope, key } of claims) storage.keys.delete(scope, key);
        return ledger.begin(claims);
      },
    }),
  ),
  brokenLedger('keys that never expire', 'forgets a completed key when its time is over', (ledger) => ({
    complete: (completions) =>
      ledger.complete(completions.map((completion) => ({ ...completion, keepMs: 1e15 }))),
  })),
  brokenLedger('a cap that is ignored', 'caps the live keys of a scope', (ledger) => ({
    begin: (claims) => ledger.begin(claims.map(({ liveMax, ...claim }) => claim)),
  })),
  brokenLedger('marks that are not unique', 'marks each event once for each handler', (ledger) => ({
    async mark(marks) {
      await ledger.mark(marks);
      return marks.map(() => true);
    },
  })),
  brokenLedger('scopes that meet', 'keeps scopes apart', (ledger) => ({
    begin: (claims) => ledger.begin(claims.map((claim) => ({ ...claim, scope: 'one for all' }))),
  })),
];

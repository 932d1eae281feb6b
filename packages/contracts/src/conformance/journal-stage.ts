import type {
  AssemblyLease,
  Claimed,
  ClaimedAssembly,
  ClaimRequest,
  NewAssembly,
  ProgressEntry,
  StartResult,
  StepRecord,
  StoredAssembly,
} from '../journal.ts';
import { ensure, expectLike } from './assertions.ts';
import type { Stage } from './stage.ts';

/** Helper methods for checks of journals. */
export class JournalStage {
  readonly stage: Stage;
  /**
   * Only this check uses the program. So its claims find no assemblies (work in several steps) of other
   * checks.
   */
  readonly program: string;

  constructor(stage: Stage) {
    this.stage = stage;
    this.program = stage.name('program');
  }

  get journal() {
    return this.stage.journal;
  }

  get unitMs(): number {
    return this.stage.unitMs;
  }

  pass(units: number): Promise<void> {
    return this.stage.pass(units);
  }

  newAssembly(rest: Partial<NewAssembly> = {}): NewAssembly {
    return { id: this.stage.name('order'), name: this.program, version: 1, input: '{"item":7}', ...rest };
  }

  async start(...rests: Partial<NewAssembly>[]): Promise<string[]> {
    const starts = rests.map((rest) => this.newAssembly(rest));
    const results = await this.journal.record(starts.map((start) => ({ kind: 'start', start })));
    expectLike(
      results,
      starts.map(() => ({ kind: 'accepted' })),
      'new assemblies are accepted',
    );
    return starts.map(({ id }) => id);
  }

  async startOne(rest: Partial<NewAssembly> = {}): Promise<string> {
    return (await this.start(rest))[0]!;
  }

  async startResult(start: NewAssembly): Promise<StartResult> {
    const [result] = await this.journal.record([{ kind: 'start', start }]);
    return result as StartResult;
  }

  claimAll(request: Partial<ClaimRequest> = {}): Promise<Claimed> {
    return this.journal.claim({
      worker: 'worker-1',
      leaseMs: 50 * this.unitMs,
      limit: 100,
      programs: [{ name: this.program, version: 1 }],
      ...request,
    });
  }

  async claim(request: Partial<ClaimRequest> = {}): Promise<readonly ClaimedAssembly[]> {
    return (await this.claimAll(request)).assemblies;
  }

  async claimOne(request: Partial<ClaimRequest> = {}): Promise<ClaimedAssembly> {
    const claimed = await this.claim(request);
    ensure(claimed.length === 1, `one assembly can be claimed, got ${claimed.length}`);
    return claimed[0]!;
  }

  async expectIds(claimed: readonly { readonly id: string }[], ids: readonly string[], why: string) {
    expectLike(
      claimed.map(({ id }) => id),
      ids,
      why,
    );
  }

  async expectNothing(why: string, request: Partial<ClaimRequest> = {}): Promise<void> {
    await this.expectIds(await this.claim(request), [], why);
  }

  /**
   * Records the progress of an assembly (work in several steps), and returns its revision. Fails unless the
   * engine accepts the progress.
   */
  async progress(lease: AssemblyLease, rest: Partial<ProgressEntry> = {}): Promise<number> {
    const [result] = await this.journal.record([{ kind: 'progress', lease, steps: [], ...rest }]);
    expectLike(result, { kind: 'took' }, 'progress under a lease is taken');
    return (result as { revision: number }).revision;
  }

  async expectLost(lease: AssemblyLease, rest: Partial<ProgressEntry> = {}): Promise<void> {
    const results = await this.journal.record([{ kind: 'progress', lease, steps: [], ...rest }]);
    expectLike(results, [{ kind: 'lease_lost' }], 'progress under a lost lease says so');
  }

  async one(id: string): Promise<StoredAssembly> {
    const [found] = await this.journal.get([id]);
    ensure(found, `assembly ${id} is stored`);
    return found;
  }

  done(path: string, order: number, rest: Partial<StepRecord> = {}): StepRecord {
    return { path, kind: 'run', state: 'done', order, attempts: 1, at: 1000, result: `"${path}"`, ...rest };
  }
}

import type { Clock } from 'holdfast';
import {
  type Assigned,
  answerOf,
  assignorName,
  assignPartitions,
  type GroupMember,
  isPassing,
  KafkaAnswerError,
  type KafkaClient,
  type Line,
  readAssignment,
  subscribedTopics,
  throwAnswer,
  writeSubscription,
} from './kafka-client.ts';
import { Pause } from './pause.ts';

export interface GroupSettings {
  readonly client: KafkaClient;
  readonly clock: Clock;
  readonly group: string;
  readonly sessionTimeoutMs: number;
  readonly rebalanceTimeoutMs: number;
  /** Returns the topics to read. Called before each join. */
  topics(): Promise<readonly string[]>;
  /**
   * Called after each join, with all partitions that this process owns. If the previous call also listed a
   * partition, this process has owned it without interruption.
   */
  assigned(partitions: readonly Assigned[]): Promise<void>;
  /** Called when the server has removed this process from the group: other processes own its partitions. */
  lost(): void;
  onError(error: unknown): void;
}

export interface CommittedOffset {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  readonly metadata: string;
}

interface JoinAnswer {
  readonly errorCode: number;
  readonly generationId: number;
  readonly leader: string;
  readonly memberId: string;
  readonly members: readonly GroupMember[];
}

const heartbeatsPerSession = 3;
const retryMs = 100;

/**
 * A member of a consumer group. During a rebalance, the member keeps all partitions that it need not give up
 * (cooperative rebalancing). Each commit contains the generation of the group, so that the server can refuse
 * commits of removed members.
 */
export class ConsumerGroup {
  readonly #settings: GroupSettings;
  readonly #line: Line;
  /**
   * The connection for commits. A join blocks its connection until all members have joined, so commits use
   * another one.
   */
  readonly #commitLine: Line;
  readonly #pause: Pause;
  #coordinator: number | undefined;
  #memberId = '';
  #generation = -1;
  #owned: readonly Assigned[] = [];
  #mustJoin = true;
  #isLeader = false;
  #layout = '';
  #membership = { isOver: true };
  #left: Promise<void> = Promise.resolve();
  #joined = Promise.withResolvers<void>();

  constructor(settings: GroupSettings) {
    this.#settings = settings;
    this.#line = settings.client.newLine();
    this.#commitLine = settings.client.newLine();
    this.#pause = new Pause(settings.clock);
  }

  /** Joins the group, if this process is not a member. Resolves when it knows which partitions it owns. */
  join(): Promise<void> {
    if (this.#membership.isOver) {
      this.#joined = Promise.withResolvers();
      this.#joined.promise.catch(() => {});
      const membership = { isOver: false };
      this.#membership = membership;
      this.#left = this.#left.then(() => this.#run(membership));
    }
    return this.#joined.promise;
  }

  /** Call this when the list of topics to read has changed: the member joins again with the new list. */
  rejoin(): void {
    this.#mustJoin = true;
    this.#pause.end();
  }

  /** Leaves the group. Resolves when other members can get the partitions of this process. */
  async leave(): Promise<void> {
    if (this.#membership.isOver) return this.#left;
    this.#membership.isOver = true;
    this.#joined.reject(new Error(`the consumer has left group ${this.#settings.group}`));
    this.#pause.end();
    await this.#left;
  }

  async close(): Promise<void> {
    // The answer to a join may come only at the end of the rebalance. Close the connection, so that the join
    // fails at once.
    const leaving = this.leave();
    if (this.#generation < 0) await this.#line.close();
    await leaving;
    await Promise.all([this.#line.close(), this.#commitLine.close()]);
  }

  /**
   * Returns true if the offsets are committed, false if the server refused because other members own the
   * partitions.
   */
  async commit(offsets: readonly CommittedOffset[]): Promise<boolean> {
    const generation = this.#generation;
    if (generation < 0) return false;
    const { group } = this.#settings;
    const topics = new Map<string, { name: string; partitions: object[] }>();
    for (const { topic, partition, offset, metadata } of offsets) {
      const named = topics.get(topic) ?? { name: topic, partitions: [] };
      topics.set(topic, named);
      named.partitions.push({
        partitionIndex: partition,
        committedOffset: BigInt(offset),
        committedLeaderEpoch: -1,
        committedMetadata: metadata,
      });
    }
    try {
      const node = await this.#findCoordinator();
      const answer = await this.#commitLine.request<CommitAnswer>(node, 'OffsetCommit', [
        ...[group, generation, this.#memberId, null],
        [...topics.values()],
      ]);
      for (const { partitions } of answer.topics)
        for (const { errorCode } of partitions) throwAnswer(`a commit of group ${group}`, errorCode);
      return true;
    } catch (error) {
      // A join succeeded during this commit, so the commit had an old generation. The caller repeats it for
      // the partitions that this process still owns.
      if (answerOf(error) === 'ILLEGAL_GENERATION' && generation !== this.#generation)
        throw new KafkaAnswerError(`a commit of group ${group}`, 'REBALANCE_IN_PROGRESS');
      if (isFenced(error)) {
        this.#lose();
        this.#pause.end();
        return false;
      }
      if (answerOf(error) !== 'REBALANCE_IN_PROGRESS') this.#coordinator = undefined;
      throw error;
    }
  }

  async #run(membership: { readonly isOver: boolean }): Promise<void> {
    while (!membership.isOver) {
      try {
        if (this.#mustJoin) await this.#joinOrTryAgain();
        else await this.#heartbeat();
        if (!this.#mustJoin) await this.#wait(this.#settings.sessionTimeoutMs / heartbeatsPerSession);
      } catch (error) {
        if (membership.isOver) break;
        await this.#recover(error);
      }
    }
    await this.#leaveGroup();
  }

  async #joinOrTryAgain(): Promise<void> {
    this.#mustJoin = false;
    try {
      await this.#joinGroup();
    } catch (error) {
      this.#mustJoin = true;
      throw error;
    }
  }

  async #joinGroup(): Promise<void> {
    const { client, group, sessionTimeoutMs, rebalanceTimeoutMs } = this.#settings;
    const wanted = await this.#settings.topics();
    const node = await this.#findCoordinator();
    const metadata = writeSubscription(wanted, this.#owned, this.#generation);
    const joined = await this.#line.request<JoinAnswer>(node, 'JoinGroup', [
      ...[group, sessionTimeoutMs, rebalanceTimeoutMs, this.#memberId, null, 'consumer'],
      [{ name: assignorName, metadata }],
      '',
    ]);
    if (joined.memberId) this.#memberId = joined.memberId;
    throwAnswer(`a join of group ${group}`, joined.errorCode);
    // Store the generation before the next request. If another rebalance starts meanwhile, the group leader
    // ignores the owned partitions of members with an older generation.
    this.#generation = joined.generationId;
    this.#isLeader = joined.leader === joined.memberId;
    let assignments: { memberId: string; assignment: Buffer }[] = [];
    if (this.#isLeader) {
      const layouts = await client.topics(subscribedTopics(joined.members));
      this.#layout = layoutOf(layouts);
      assignments = assignPartitions(joined.memberId, joined.members, layouts);
    }
    const synced = await this.#line.request<{ errorCode: number; assignment: Buffer }>(node, 'SyncGroup', [
      ...[group, joined.generationId, joined.memberId, null, 'consumer', assignorName, assignments],
    ]);
    throwAnswer(`a join of group ${group}`, synced.errorCode);
    const assigned = readAssignment(synced.assignment);
    const givenUp = this.#owned.some(({ topic, partitions }) =>
      partitions.some((partition) => !includes(assigned, topic, partition)),
    );
    this.#owned = assigned;
    await this.#settings.assigned(assigned);
    this.#joined.resolve();
    // This process has given up partitions. Other members get these partitions only at the next join, so join
    // again at once.
    if (givenUp) this.#mustJoin = true;
  }

  async #heartbeat(): Promise<void> {
    const { client, group } = this.#settings;
    const node = await this.#findCoordinator();
    const answer = await this.#line.request<{ errorCode: number }>(node, 'Heartbeat', [
      ...[group, this.#generation, this.#memberId, null],
    ]);
    throwAnswer(`a heartbeat of group ${group}`, answer.errorCode);
    if (this.#isLeader) {
      const layouts = await client.topics(await this.#settings.topics());
      if (!this.#layout.includes(layoutOf(layouts))) this.#mustJoin = true;
    }
  }

  async #recover(error: unknown): Promise<void> {
    const answer = answerOf(error);
    if (answer === 'REBALANCE_IN_PROGRESS' || answer === 'MEMBER_ID_REQUIRED') {
      this.#mustJoin = true;
      return;
    }
    if (isFenced(error)) return this.#lose();
    this.#coordinator = undefined;
    if (!isPassing(error)) this.#settings.onError(error);
    await this.#wait(retryMs);
  }

  #lose(): void {
    this.#memberId = '';
    this.#generation = -1;
    this.#owned = [];
    this.#mustJoin = true;
    this.#settings.lost();
  }

  async #leaveGroup(): Promise<void> {
    const memberId = this.#memberId;
    this.#lose();
    if (memberId === '') return;
    const { group, onError } = this.#settings;
    try {
      const node = await this.#findCoordinator();
      await this.#commitLine.request(node, 'LeaveGroup', [
        group,
        [{ memberId, groupInstanceId: null, reason: null }],
      ]);
    } catch (error) {
      // If this request fails, the server removes the member after `sessionTimeoutMs`.
      onError(error);
    }
  }

  async #findCoordinator(): Promise<number> {
    this.#coordinator ??= await this.#settings.client.coordinatorOf(this.#settings.group);
    return this.#coordinator;
  }

  async #wait(ms: number): Promise<void> {
    if (!this.#membership.isOver) await this.#pause.wait(ms);
  }
}

interface CommitAnswer {
  readonly topics: readonly { readonly partitions: readonly { readonly errorCode: number }[] }[];
}

function isFenced(error: unknown): boolean {
  const answer = answerOf(error);
  return answer === 'UNKNOWN_MEMBER_ID' || answer === 'ILLEGAL_GENERATION' || answer === 'FENCED_INSTANCE_ID';
}

function includes(assigned: readonly Assigned[], topic: string, partition: number): boolean {
  return assigned.some((each) => each.topic === topic && each.partitions.includes(partition));
}

function layoutOf(layouts: readonly { name: string; leaders: readonly number[] }[]): string {
  return layouts
    .map(({ name, leaders }) => `${name}:${leaders.length};`)
    .sort()
    .join('');
}

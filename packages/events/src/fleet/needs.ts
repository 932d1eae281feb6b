import type {
  ActiveControl,
  Engine,
  Operation,
  ParkedFilter,
  PresentProcess,
  ProgramCounts,
  StoredAssembly,
  TopicCounts,
} from '@holdfast/contracts';
import { assemblyStates } from '@holdfast/contracts';
import type { PolicyState } from 'holdfast';
import { nearest } from 'holdfast/fields';
import { controlEffect } from './control-effect.ts';
import { type FleetState, fleetState } from './fleet-state.ts';
import { consumersOf, isMaintained, policiesOf, processName } from './reported-states.ts';
import { spanText } from './span-text.ts';

/** The topic, group, policy, operation or parked events that a problem (`Need`) or a note is about. */
export type NeedSubject =
  | { readonly kind: 'topic' | 'group' | 'policy' | 'operation'; readonly name: string }
  | { readonly kind: 'parked'; readonly filter: ParkedFilter };

/** A problem that an operator should look at. */
export interface Need {
  readonly kind: NeedKind;
  readonly about: NeedSubject;
  /** A few words, such as `Nobody consumes "orders"`. */
  readonly title: string;
  /** One sentence with the measured number and its limit. */
  readonly says: string;
  /** A `holdfast` command that shows more or helps to solve the problem. */
  readonly command: string;
}

/** What an operator should know although it is no problem now: parked events that wait, or a paused topic. */
export interface FleetNote extends Omit<Need, 'kind'> {
  readonly kind: 'waiting' | 'paused';
}

/**
 * All checks. The worst kind of problem comes first. The text of a check is shown if the check finds no
 * problem.
 */
const checks = {
  consumers: 'events that are due are taken, or paused on purpose',
  assemblies: 'assemblies that are due are run, or paused on purpose',
  growing: 'no group of parked events grows',
  dependencies: 'consumers depend on policies that exist',
  breakers: 'no breaker has been open for 10 s by itself',
  lag: 'no topic lags behind',
  replays: 'no replay has stopped itself, or waits for maintenance that no process runs',
  controls: 'no control is forgotten or unheard',
  retention: 'no parked event is about to be removed',
} as const;
export type NeedKind = keyof typeof checks;

/** The problems that need an operator now, the checks that found none, and the numbers that were checked. */
export interface FleetNeeds {
  /** The present time, epoch ms by the store's clock. */
  readonly now: number;
  readonly needs: readonly Need[];
  /**
   * What an operator should know although it is not a problem in `needs`: parked events that wait and do not
   * grow in number, and topics that are paused.
   */
  readonly notes: readonly FleetNote[];
  /** The checks that found no problem, as texts. */
  readonly good: readonly string[];
  readonly figures: FleetFigures;
  readonly counts: ReadonlyMap<string, TopicCounts>;
  /** The latest 200 operations. */
  readonly operations: readonly Operation[];
}

/** The numbers of a whole fleet (all processes that share a store) at one time. */
export interface FleetFigures {
  readonly topics: number;
  readonly ready: number;
  readonly delayed: number;
  readonly inHand: number;
  /**
   * Events that were leased when their process died. Each one is handled while its consumer handles no other
   * event.
   */
  readonly suspects: number;
  /** Parked events whose keys are blocked: later events of these keys wait. */
  readonly blocking: number;
  readonly parked: number;
  /**
   * The number of assemblies (durable workflows) of all states, and of those that are parked. Both are 0 in a
   * store without a journal.
   */
  readonly assemblies: number;
  readonly assembliesParked: number;
  readonly processes: number;
  readonly consumers: number;
  readonly policies: number;
  readonly breakersOpen: number;
  readonly operationsRunning: number;
}

const groupMin = 10;
const grewWithinMs = 3e5;
/** A group still grows if its latest event was parked within this time (ms). */
const growsWithinMs = 6e4;
const breakerOpenMs = 1e4;
const lagMs = 6e4;
/** If an event has been due for this time (ms) and no consumer takes it, that is a problem. */
const untakenMs = 1e4;
/** At most this many waiting assemblies of each program version are read, the latest ones. */
const assembliesRead = 100;
const replaySeenMs = 864e5;
/**
 * If an operation is in the stage `selecting` or `applying` for longer than this (ms), no process runs it: a
 * process that runs it leaves these stages quickly.
 */
const untouchedMs = 2e3;
const unmovedMs = 6e4;
const endlessMs = 36e5;
/**
 * A process reads the controls every 2 s by default. So after this time (ms) it should have read a new
 * control.
 */
const heardMs = 1e4;
const removedWithinMs = 864e5;

type NeedsEngine = Pick<Engine, 'presence' | 'controls' | 'journal'> &
  Required<Pick<Engine, 'broker' | 'triage' | 'audit'>>;

interface Seen {
  readonly engine: NeedsEngine;
  readonly fleet: FleetState;
  readonly counts: ReadonlyMap<string, TopicCounts>;
  readonly operations: readonly Operation[];
  readonly programs: readonly ProgramCounts[];
}

/**
 * Reads the store and returns the problems that an operator should look at. If `known` is given, the state of
 * the fleet is not read again.
 */
export async function needsOf(engine: NeedsEngine, known?: FleetState): Promise<FleetNeeds> {
  const fleet = known ?? (await fleetState(engine));
  const counts = new Map<string, TopicCounts>();
  for (const topic of await engine.broker.topics()) counts.set(topic, await engine.broker.counts(topic));
  const { items: operations } = await engine.triage.operations.list({}, { limit: 200 });
  const programs = (await engine.journal?.counts()) ?? [];
  const seen: Seen = { engine, fleet, counts, operations, programs };
  const needs = [
    ...untaken(seen),
    ...(await untakenAssemblies(seen)),
    ...(await growingGroups(seen)),
    ...unknownDependencies(seen),
    ...openBreakers(seen),
    ...lagging(seen),
    ...waitingOperations(seen),
    ...(await stoppedReplays(seen)),
    ...longControls(seen),
    ...(await endingRetention(seen)),
  ];
  const found = new Set(needs.map(({ kind }) => kind));
  const good = (Object.keys(checks) as NeedKind[])
    .filter((kind) => !found.has(kind))
    .map((kind) => checks[kind]);
  const notes = [
    ...(await waitingEvents(seen, needs)),
    ...blockedKeys(seen),
    ...suspects(seen),
    ...parkedAssemblies(seen),
    ...pausedTopics(seen),
  ];
  return { now: fleet.now, needs, notes, good, figures: await figuresOf(seen), counts, operations };
}

/**
 * Returns a note with the number of parked events that nobody works on, however long ago they were parked. It
 * reads only counts that the store keeps up to date, because it is called every few seconds.
 */
async function waitingEvents(
  { engine: { triage }, fleet, operations }: Seen,
  needs: readonly Need[],
): Promise<FleetNote[]> {
  // The list `needs` already names the groups that grow, so their events are not counted here.
  const named = needs.flatMap(({ about }) => (about.kind === 'group' ? about.name : []));
  const all = await triage.count({});
  const growing = named.length === 0 ? 0 : await triage.count({ fingerprint: named });
  const inReplays = operations
    .filter(({ endedAt }) => endedAt === undefined)
    .reduce((total, { counts }) => total + counts.selected - counts.released, 0);
  const count = all - growing - inReplays;
  if (count <= 0) return [];
  const { items } = await triage.groups({}, { limit: 200 });
  const ages = items
    .filter(({ fingerprint }) => !named.includes(fingerprint))
    .map(({ lastAt }) => fleet.now - lastAt);
  const title = `${count.toLocaleString('en-US')} ${count === 1 ? 'event waits' : 'events wait'} in the parking lot`;
  // Only the first 200 groups are read. If `needs` names all of them, the age of the other events is not
  // known.
  const says = ages.length === 0 ? `${title}.` : `${title}, none new for ${spanText(Math.min(...ages))}.`;
  return [{ kind: 'waiting', about: { kind: 'parked', filter: {} }, title, says, command: 'dlq groups' }];
}

function blockedKeys({ counts }: Seen): FleetNote[] {
  return [...counts].flatMap(([topic, { blocking, behind }]) => {
    if (blocking === 0) return [];
    const title = `${many(blocking, 'parked event')} of "${topic}" ${blocking === 1 ? 'blocks its key' : 'block their keys'}`;
    return {
      ...{ kind: 'waiting', about: { kind: 'topic', name: topic }, title },
      says: `${title}: ${many(behind, 'later event')} ${behind === 1 ? 'waits' : 'wait'} until ${blocking === 1 ? 'it is' : 'they are'} replayed or unblocked.`,
      command: `topics waiting ${topic} --state blocking`,
    };
  });
}

function suspects({ counts }: Seen): FleetNote[] {
  return [...counts].flatMap(([topic, { suspect }]) => {
    if (suspect === 0) return [];
    const title = `${many(suspect, 'event')} of "${topic}" may have crashed a process`;
    return {
      ...{ kind: 'waiting', about: { kind: 'topic', name: topic }, title },
      says: `${title}: ${suspect === 1 ? 'it' : 'each'} is handled while its consumer handles nothing else.`,
      command: `topics waiting ${topic} --state suspect`,
    };
  });
}

function parkedAssemblies({ programs }: Seen): FleetNote[] {
  const parked = programs.filter((each) => each.parked > 0);
  const [first] = parked;
  if (!first) return [];
  const count = parked.reduce((total, each) => total + each.parked, 0);
  const title = `${many(count, 'assembly is', 'assemblies are')} parked`;
  const names = [...new Set(parked.map(({ name }) => name))].slice(0, 3).join(', ');
  return [
    {
      ...{ kind: 'waiting', about: { kind: 'topic', name: programPrefix + first.name }, title },
      ...{ says: `${title} (${names}).`, command: 'assembly groups' },
    },
  ];
}

function pausedTopics({ fleet }: Seen): FleetNote[] {
  return fleet.controls.flatMap((active) => {
    const { control, act, since, until } = active;
    // `longControls` reports a pause that somebody may have forgotten as a problem, so it is left out here.
    if (control.kind !== 'pause' || isForgotten(active, fleet.now)) return [];
    const { topic } = control;
    const end =
      until === undefined
        ? 'without an end'
        : `for ${spanText(until - fleet.now)} more, until ${isoTime(until)}`;
    const effect = `topic "${topic}": ${controlEffect(control)}`;
    return {
      ...{ kind: 'paused', about: { kind: 'topic', name: topic }, title: effect },
      says: `${effect} by ${act.who} ${spanText(fleet.now - since)} ago, ${end}: ${act.why}.`,
      command: resumeCommand(topic),
    };
  });
}

const programPrefix = 'assembly/';

function resumeCommand(topic: string): string {
  return topic.startsWith(programPrefix)
    ? `assembly unpause ${topic.slice(programPrefix.length)}`
    : `topics resume ${topic}`;
}

function isoTime(epochMs: number): string {
  return `${new Date(epochMs).toISOString().slice(0, 19)}Z`;
}

function untaken({ fleet, counts }: Seen): Need[] {
  return [...counts]
    .filter(([topic, { ready, leased, oldestReadyMs }]) => {
      const isTaken = leased > 0 || consumersOf(fleet.processes, topic).length > 0;
      return ready > 0 && oldestReadyMs > untakenMs && !isTaken && !pauseOf(fleet, topic);
    })
    .map(([topic, { ready, oldestReadyMs }]) => ({
      kind: 'consumers',
      about: { kind: 'topic', name: topic },
      title: `Nobody consumes "${topic}"`,
      says: `${many(ready, 'event')} of "${topic}" ${ready === 1 ? 'is' : 'are'} due for up to ${spanText(oldestReadyMs)}, and no process that reports consumes them.`,
      command: `topics show ${topic}`,
    }));
}

/**
 * Finds assemblies that are due and that no worker takes. If others of their program are leased, the workers
 * may only be busy, so these need a person later.
 */
async function untakenAssemblies({ engine: { journal }, fleet, programs }: Seen): Promise<Need[]> {
  const needs: Need[] = [];
  for (const { name, version, waiting, running } of programs) {
    if (!journal || waiting === 0 || pauseOf(fleet, programPrefix + name)) continue;
    const { items } = await journal.list({ name, version, state: 'waiting' }, { limit: assembliesRead });
    const lateMs = items.flatMap((each) => {
      // The limits of a queue may be the reason why an assembly waits.
      const isLimited = each.queue !== undefined && running > 0;
      return each.dueAt === undefined || isLimited || isQuarantined(fleet, each)
        ? []
        : fleet.now - each.dueAt;
    });
    const late = lateMs.filter((ms) => ms > (running > 0 ? lagMs : untakenMs));
    if (late.length === 0) continue;
    const program = `${name}@${version}`;
    const why =
      running === 0
        ? 'no process runs this program'
        : `no worker takes them: ${many(running, 'other')} of this program ${running === 1 ? 'is' : 'are'} leased to workers that are busy, or dead`;
    const count = `${items.length === assembliesRead ? 'at least ' : ''}${many(late.length, 'assembly', 'assemblies')}`;
    needs.push({
      kind: 'assemblies',
      about: { kind: 'topic', name: programPrefix + name },
      title: running === 0 ? `Nobody runs "${program}"` : `"${program}" lags`,
      says: `${count} of "${program}" ${late.length === 1 ? 'is' : 'are'} due for up to ${spanText(Math.max(...late))}, and ${why}.`,
      command: `assembly ls --name ${name} --version ${version} --state waiting`,
    });
  }
  return needs;
}

function isQuarantined({ controls }: FleetState, { name, tenant, key }: StoredAssembly): boolean {
  return controls.some(
    ({ control }) =>
      control.kind === 'quarantine' &&
      control.topic === programPrefix + name &&
      (('tenant' in control && control.tenant !== undefined && control.tenant === tenant) ||
        ('key' in control && control.key !== undefined && control.key === key)),
  );
}

async function growingGroups({ engine: { triage }, fleet }: Seen): Promise<Need[]> {
  const { items } = await triage.groups({}, { limit: 200 });
  const groups: { need: Need; grows: boolean; grown: number; count: number }[] = [];
  for (const { fingerprint, count, lastAt, reason, message } of items) {
    if (count < groupMin || lastAt < fleet.now - grewWithinMs) continue;
    const grown = await triage.count({ fingerprint, from: fleet.now - grewWithinMs });
    const last = `the last one ${spanText(fleet.now - lastAt)} ago`;
    const grows = lastAt >= fleet.now - growsWithinMs;
    const need: Need = {
      kind: 'growing',
      about: { kind: 'group', name: fingerprint },
      title: `One error has parked ${many(count, 'event')}, ${grows ? 'and goes on' : last}`,
      says: `${many(count, 'event')} parked with ${errorText(reason, message)}, ${grown} of them in the last ${spanText(grewWithinMs)}${grows ? ` (a group of ${groupMin} or more that still grows)` : `, ${last} (a group of ${groupMin} or more)`}.`,
      command: `dlq ls --group ${fingerprint}`,
    };
    groups.push({ need, grows, grown, count });
  }
  return groups
    .sort((a, b) => Number(b.grows) - Number(a.grows) || b.grown - a.grown || b.count - a.count)
    .map(({ need }) => need);
}

function unknownDependencies({ fleet }: Seen): Need[] {
  return consumersOf(fleet.processes).flatMap(({ name, topic, unknownDependencies: unknown = [], process }) =>
    unknown.map((policy) => ({
      kind: 'dependencies' as const,
      about: { kind: 'topic' as const, name: topic },
      title: `"${name}" depends on a policy that does not exist`,
      says: `consumer "${name}" of ${processName(process)} depends on the policy "${policy}", which its process does not have; ${meantOf(policy, process)}`,
      command: `topics show ${topic}`,
    })),
  );
}

/**
 * Returns one problem per policy, not one per breaker. If the system that a policy calls is down, the
 * policy's breakers open in every process.
 */
function openBreakers({ fleet }: Seen): Need[] {
  const open = new Map<
    string,
    { targets: Set<string | null>; processes: Set<PresentProcess>; longestMs: number }
  >();
  for (const { name, targets, process, enforcedShare } of policiesOf(fleet.processes)) {
    if (enforcedShare === 0) continue; // The policy only observes, so its breaker refuses no calls.
    for (const { target, breaker, breakerForMs = 0, failingForMs = breakerForMs, forced } of targets) {
      // A breaker that tests its target every few seconds is half-open for a short time. `failingForMs`
      // includes these short times, so such a breaker still counts as open.
      if (breaker === undefined || breaker === 'closed' || forced || failingForMs <= breakerOpenMs) continue;
      const found = open.get(name) ?? { targets: new Set(), processes: new Set(), longestMs: 0 };
      found.targets.add(target);
      found.processes.add(process);
      open.set(name, { ...found, longestMs: Math.max(found.longestMs, failingForMs) });
    }
  }
  return [...open].map(([policy, { targets, processes, longestMs }]) => {
    const [first = null] = targets;
    const where = processes.size === 1 ? processName([...processes][0]!) : `${processes.size} processes`;
    const which =
      targets.size > 1
        ? `${targets.size} breakers of policy "${policy}" are`
        : `the breaker of ${first === null ? `policy "${policy}"` : `"${first}" (policy "${policy}")`} is`;
    return {
      kind: 'breakers',
      about: { kind: 'policy', name: policy },
      title:
        targets.size > 1
          ? `${targets.size} breakers of ${policy} are open`
          : `A breaker of ${policy} is open`,
      says: `${which} open for ${spanText(longestMs)} in ${where} (limit: ${spanText(breakerOpenMs)}).`,
      command: `policies show ${policy}`,
    };
  });
}

function lagging({ fleet, counts }: Seen): Need[] {
  return [...counts]
    .filter(([topic, { ready, leased, oldestReadyMs }]) => {
      const isTaken = leased > 0 || consumersOf(fleet.processes, topic).length > 0;
      return ready > 0 && oldestReadyMs > lagMs && isTaken && !pauseOf(fleet, topic);
    })
    .map(([topic, { ready, oldestReadyMs }]) => ({
      kind: 'lag',
      about: { kind: 'topic', name: topic },
      title: `"${topic}" lags`,
      says: `topic "${topic}" lags: its oldest event of ${ready} is due for ${spanText(oldestReadyMs)} (limit: ${spanText(lagMs)}).`,
      command: `topics show ${topic}`,
    }));
}

/**
 * Finds operations (such as replays) that make no progress, because the command that started them has ended
 * and no process runs `maintenance`. While a command runs an operation, the operation makes progress all the
 * time.
 */
function waitingOperations({ fleet, operations }: Seen): Need[] {
  if (isMaintained(fleet.processes)) return [];
  return operations.flatMap(({ id, request, stage, startedAt, endedAt, memo }) => {
    const isFresh = stage === 'selecting' || stage === 'applying';
    const movedAt = Math.max(startedAt, memo.canarySince, Math.min(memo.paidUntil, fleet.now));
    const isWaiting = fleet.now - movedAt > (isFresh ? untouchedMs : unmovedMs) && stage !== 'tracking';
    if (endedAt !== undefined || !isWaiting) return [];
    const says = `${request.kind} ${id} is at "${stage}" for ${spanText(fleet.now - movedAt)}, and no process that reports here runs maintenance.`;
    const about = { kind: 'operation' as const, name: id };
    const title = `A ${request.kind} waits for somebody who runs it`;
    return [{ kind: 'replays' as const, about, title, says, command: `dlq replay --resume ${id}` }];
  });
}

async function stoppedReplays({ engine: { audit }, fleet, operations }: Seen): Promise<Need[]> {
  const needs: Need[] = [];
  for (const { id, request, stage, stopped, endedAt = fleet.now, counts } of operations) {
    if (request.kind !== 'replay' || (stage !== 'stopped' && stage !== 'stopping')) continue;
    if (endedAt < fleet.now - replaySeenMs) continue;
    const byPerson = await audit.list(
      { subject: `operation:${id}`, what: 'operation_stopped' },
      { limit: 1 },
    );
    if (byPerson.items.length > 0) continue;
    needs.push({
      kind: 'replays',
      about: { kind: 'operation', name: id },
      title: 'A replay has stopped itself',
      says: `replay ${id} stopped itself ${spanText(fleet.now - endedAt)} ago: ${stopped}; ${counts.failedAgain} of ${counts.released} failed again.`,
      command: `dlq replays show ${id}`,
    });
  }
  return needs;
}

/**
 * True: somebody may have forgotten the control. It has no end, and it forces a breaker or was set more than
 * 1 hour ago.
 */
function isForgotten({ control, since, until }: ActiveControl, now: number): boolean {
  return until === undefined && (control.kind === 'breaker' || now - since > endlessMs);
}

function longControls({ fleet }: Seen): Need[] {
  return fleet.controls.flatMap((active) => {
    const { id, control, act, since, heard } = active;
    const command = commandOf(active);
    const name = 'topic' in control ? control.topic : control.policy;
    const about = { kind: 'topic' in control ? ('topic' as const) : ('policy' as const), name };
    const unheard = fleet.processes.filter((process) => heard[process.id] === 'not_heard');
    const isUnheard = unheard.length > 0 && fleet.now - since > heardMs;
    const set = `${controlEffect(control)} by ${act.who} ${spanText(fleet.now - since)} ago: ${act.why}`;
    const found: Need[] = [];
    if (isForgotten(active, fleet.now))
      found.push({
        ...{ kind: 'controls', about, title: `${name}: ${controlEffect(control)}, without an end` },
        ...{ says: `control ${id} has no end: ${set}.`, command },
      });
    if (isUnheard)
      found.push({
        ...{ kind: 'controls', about, title: `${name}: not every process has heard`, command },
        says: `${many(unheard.length, 'process', 'processes')} of ${fleet.processes.length} did not hear of control ${id} for ${spanText(fleet.now - since)}: ${unheard.slice(0, 3).map(processName).join(', ')}.`,
      });
    return found;
  });
}

/**
 * Finds parked events that the store will remove soon. The store lists events only by the time of parking. So
 * this function assumes that all events are kept as long as the latest one.
 */
async function endingRetention({ engine: { triage }, fleet }: Seen): Promise<Need[]> {
  const { items: latest } = await triage.list({}, { limit: 1 });
  if (!latest[0]) return [];
  const keepMs = latest[0].removedInMs + fleet.now - latest[0].parkedAt;
  const filter: ParkedFilter = { from: 0, to: fleet.now - keepMs + removedWithinMs };
  const { items, cursor } = await triage.list(filter, { limit: 200 });
  const ending = items.filter(({ removedInMs }) => removedInMs < removedWithinMs);
  if (ending.length === 0) return [];
  const firstMs = Math.min(...ending.map(({ removedInMs }) => removedInMs));
  return [
    {
      kind: 'retention',
      about: { kind: 'parked', filter },
      title: 'Parked events are about to be removed',
      says: `${cursor === undefined ? '' : 'at least '}${many(ending.length, 'parked event')} will be removed within ${spanText(removedWithinMs)}, the first in ${spanText(firstMs)}.`,
      command: `dlq ls --until ${new Date(filter.to!).toISOString()}`,
    },
  ];
}

async function figuresOf(seen: Seen): Promise<FleetFigures> {
  const { engine, fleet, counts, operations, programs } = seen;
  const sum = (read: (each: TopicCounts) => number) =>
    [...counts.values()].reduce((total, each) => total + read(each), 0);
  const policies = policiesOf(fleet.processes);
  return {
    topics: counts.size,
    ready: sum(({ ready }) => ready),
    delayed: sum(({ delayed }) => delayed),
    inHand: sum(({ leased }) => leased),
    suspects: sum(({ suspect }) => suspect),
    blocking: sum(({ blocking }) => blocking),
    parked: await engine.triage.count({}),
    assemblies: programs.reduce((total, each) => total + assembliesOf(each), 0),
    assembliesParked: programs.reduce((total, { parked }) => total + parked, 0),
    processes: fleet.processes.length,
    consumers: consumersOf(fleet.processes).length,
    policies: new Set(policies.map(({ name }) => name)).size,
    breakersOpen: policies.flatMap(({ targets }) => targets).filter(({ breaker }) => breaker === 'open')
      .length,
    operationsRunning: operations.filter(({ endedAt }) => endedAt === undefined).length,
  };
}

function assembliesOf(counts: ProgramCounts): number {
  return assemblyStates.reduce((total, state) => total + counts[state], 0);
}

function pauseOf({ controls }: FleetState, topic: string): ActiveControl | undefined {
  return controls.find(
    ({ control }) => control.kind === 'pause' && control.topic === topic && !('only' in control),
  );
}

function commandOf({ control }: ActiveControl): string {
  return 'topic' in control ? `topics show ${control.topic}` : `policies show ${control.policy}`;
}

function meantOf(policy: string, process: PresentProcess): string {
  const names = (process.policies as readonly PolicyState[]).map(({ name }) => name);
  const meant = nearest(policy, names);
  return meant === undefined ? 'it waits for nothing.' : `did you mean "${meant}"?`;
}

const errorTextMax = 80;

function errorText(reason: string, message: string): string {
  const text = (message === '' ? reason : `${reason}: ${message}`).replace(/\s+/g, ' ').trim();
  return text.length > errorTextMax ? `${text.slice(0, errorTextMax - 1)}…` : text;
}

function many(count: number, one: string, more = `${one}s`): string {
  return `${count} ${count === 1 ? one : more}`;
}

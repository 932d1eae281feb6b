import type { ParkedFilter } from '@holdfast/contracts';
import { type FleetNote, type Need, spanText } from '@holdfast/events';
import type { z } from 'zod';
import type { need, overview } from '../api/overview.ts';
import type { DeepReadonly } from '../api/routes.ts';
import { breakersOf, type Observer, type SeriesName, type Snapshot } from './observer.ts';
import { type WindowName, windowMs } from './ring.ts';

type Overview = DeepReadonly<z.infer<typeof overview>>;
type ShownNeed = DeepReadonly<z.infer<typeof need>>;
type Figure = Overview['figures'][number];

const windowWords: Readonly<Record<WindowName, string>> = {
  '15m': '15 minutes',
  '1h': 'hour',
  '24h': '24 hours',
};

/** The most problems that the overview lists. A longer list would hide the important ones. */
const needsMax = 5;

export interface StoreInfo {
  readonly name: string;
  readonly engine: string;
  readonly durability: string;
}

/** The overview answers: is anything wrong, and what must be done? */
export function overviewOf(
  observer: Observer,
  snapshot: Snapshot,
  window: WindowName,
  store: StoreInfo,
): Overview {
  const { now, needs, notes, good, parked, controls, processes, operations } = snapshot;
  const sum = (name: SeriesName) => observer.series(name).sum(window, now);
  const lens = lensOf(snapshot, sum);
  const paused = controls.filter(({ control }) => control.kind === 'pause').length;
  const breakers = breakersOf(processes);
  const breakersOpen = breakers.filter(({ breaker }) => breaker === 'open').length;
  return {
    now,
    since: observer.since,
    headline: headlineOf(needs.length, notes),
    summary: summaryOf(lens, spanWords(observer, window, now), snapshot),
    needs: [...needs, ...notes].slice(0, needsMax).map(shownNeed),
    good: [...good],
    figures: figuresOf(observer, snapshot, window, breakers.length, breakersOpen),
    lens,
    badges: {
      ...{ parked, paused, breakersOpen },
      replays: operations.filter(({ endedAt, request }) => endedAt === undefined && request.kind === 'replay')
        .length,
    },
    store: { ...store, answersInMs: Math.round(snapshot.answersInMs * 10) / 10 },
  };
}

const numbers = ['Nothing', 'One thing', 'Two things', 'Three things', 'Four things', 'Five things'];

/** Without problems, the headline names the parked events: somebody must decide about them. */
function headlineOf(count: number, notes: readonly FleetNote[]): string {
  const waiting = notes.find(({ kind }) => kind === 'waiting');
  if (count === 0 && waiting) return `${waiting.title}.`;
  if (count === 1) return 'One thing needs you.';
  return count < numbers.length
    ? `${numbers[count]} need${count === 0 ? 's' : ''} you.`
    : `${count} things need you.`;
}

/** Returns the words for the time that the figures cover. The figures begin when this console starts. */
function spanWords({ since }: Observer, window: WindowName, now: number): { of: string; since: string } {
  if (since > now - windowMs[window]) {
    const words = `since this console started, ${spanText(now - since)} ago`;
    return { of: `of the work ${words},`, since: words };
  }
  const words = windowWords[window];
  return { of: `of the last ${words}'s work`, since: `in the last ${words}` };
}

function summaryOf(
  lens: Overview['lens'],
  words: { readonly of: string; readonly since: string },
  { topics }: Snapshot,
): string {
  const count = (name: string) => lens.slices.find((slice) => slice.name === name)!.count;
  const ok = count('okAtOnce') + count('okAfterRetry');
  const ended = ok + count('parked') + count('refused');
  const waits = [
    ...new Set(topics.flatMap(({ consumers }) => consumers.flatMap(({ waitsFor }) => waitsFor))),
  ];
  const parts = [
    ended === 0
      ? `No process has reported finished work ${words.since}.`
      : `${percent(ok / ended)} ${words.of} has succeeded.`,
    ...(count('parked') > 0 ? [`${grouped(count('parked'))} events were set aside.`] : []),
    ...(waits.length > 0 ? [`Consumers wait for ${waits.join(', ')}, and no attempt is used up.`] : []),
  ];
  return parts.join(' ');
}

function lensOf({ topics }: Snapshot, sum: (name: SeriesName) => number): Overview['lens'] {
  const waiting = topics.reduce((total, { counts }) => total + counts.behind + counts.held, 0);
  const retrying = topics.reduce((total, { counts }) => total + counts.delayed, 0);
  const braked = topics
    .filter(({ consumers }) => consumers.some(({ waitsFor }) => waitsFor.length > 0))
    .reduce((total, { counts }) => total + counts.ready, 0);
  const slices = [
    { name: 'okAtOnce', count: sum('okAtOnce'), says: 'succeeded with the first attempt', link: '/policies' },
    { name: 'okAfterRetry', count: sum('okAfterRetry'), says: 'customers saw nothing', link: '/policies' },
    { name: 'retrying', count: retrying, says: 'in a wait before the next attempt', link: '/topics' },
    {
      name: 'waiting',
      count: waiting + braked,
      says: 'held by a breaker, a key or a person',
      link: '/topics',
    },
    { name: 'parked', count: sum('parked'), says: 'needs a person', link: '/parked' },
    { name: 'refused', count: sum('refused'), says: 'not sent', link: '/policies' },
  ] as const;
  return {
    total: slices.reduce((total, { count }) => total + count, 0),
    slices: slices.map((slice) => ({ ...slice })),
  };
}

function figuresOf(
  observer: Observer,
  { now, topics, parked, parkedIn }: Snapshot,
  window: WindowName,
  breakers: number,
  breakersOpen: number,
): Figure[] {
  const points = (name: SeriesName) => observer.series(name).points(window, now);
  const sum = (name: SeriesName) => observer.series(name).sum(window, now);
  const shares = (part: SeriesName, whole: SeriesName) => {
    const wholes = points(whole);
    return points(part).map((point, index) => {
      const all = wholes[index];
      return point === null || all === null || all === undefined || all === 0 ? null : point / all;
    });
  };
  const attempts = sum('attempts');
  const work = sum('work');
  const oldest = topics.toSorted((a, b) => b.counts.oldestReadyMs - a.counts.oldestReadyMs)[0];
  const newlyParked = parkedIn[window];
  return [
    {
      name: 'retryRate',
      value: attempts > 0 ? sum('retries') / attempts : 0,
      says: 'retries among attempts',
      link: '/policies',
      points: shares('retries', 'attempts'),
    },
    {
      name: 'successAfterRetry',
      value: work > 0 ? sum('okAfterRetry') / work : 0,
      says: '1 % is weather, 5 % is a fault',
      link: '/policies',
      points: shares('okAfterRetry', 'work'),
    },
    {
      name: 'load',
      value: work > 0 ? attempts / work : 1,
      says: 'attempts for each piece of work',
      link: '/policies',
      points: shares('attempts', 'work'),
    },
    {
      name: 'parked',
      value: parked,
      says: newlyParked > 0 ? `${grouped(newlyParked)} in this window` : 'none in this window',
      link: '/parked',
      points: points('parkedNow'),
    },
    {
      name: 'oldestDue',
      value: oldest?.counts.oldestReadyMs ?? 0,
      says: oldest && oldest.counts.oldestReadyMs > 0 ? oldest.topic : 'nothing is overdue',
      link: '/topics',
      points: points('oldestDueMs'),
    },
    {
      name: 'breakersOpen',
      value: breakersOpen,
      of: breakers,
      says: breakersOpen > 0 ? 'calls are refused' : 'all admit calls',
      link: '/policies',
      points: points('breakersOpen'),
    },
  ];
}

const looks: Readonly<Record<string, Pick<ShownNeed, 'state' | 'button'>>> = {
  consumers: { state: 'waiting', button: 'Show the topic' },
  assemblies: { state: 'waiting', button: 'Show them' },
  growing: { state: 'parked', button: 'Open the group' },
  breakers: { state: 'refused', button: 'Show it' },
  lag: { state: 'waiting', button: 'Show the topic' },
  replays: { state: 'parked', button: 'Show the replay' },
  controls: { state: 'waiting', button: 'Show it' },
  retention: { state: 'parked', button: 'Show them' },
  waiting: { state: 'parked', button: 'Look at them' },
  paused: { state: 'waiting', button: 'Show the topic' },
};

function shownNeed({ kind, title, says, command, about }: Need | FleetNote): ShownNeed {
  const look = looks[kind] ?? { state: 'waiting', button: 'Show it' };
  return {
    kind,
    title,
    says: says.charAt(0).toUpperCase() + says.slice(1),
    command: `holdfast ${command}`,
    link: linkOf(about),
    ...look,
  };
}

function linkOf(about: Need['about']): string {
  switch (about.kind) {
    case 'topic':
      return about.name.startsWith('assembly/') ? '/assemblies' : `/topics/${encodeURIComponent(about.name)}`;
    case 'group':
      return `/parked?group=${encodeURIComponent(about.name)}`;
    case 'policy':
      return `/policies/${encodeURIComponent(about.name)}`;
    case 'operation':
      return `/replays/${encodeURIComponent(about.name)}`;
    case 'parked':
      return `/parked?${new URLSearchParams(queryOf(about.filter))}`;
  }
}

function queryOf({ from, to }: ParkedFilter): Record<string, string> {
  return { ...(from !== undefined && { from: String(from) }), ...(to !== undefined && { to: String(to) }) };
}

function percent(share: number): string {
  return `${(share * 100).toFixed(share > 0.999 && share < 1 ? 2 : 1).replace(/\.0$/, '')} %`;
}

function grouped(count: number): string {
  return count.toLocaleString('en-US');
}

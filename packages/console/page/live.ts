import { batch, computed, signal } from '@preact/signals';
import type { AnswerOf } from '../src/api/routes.ts';

type Overview = AnswerOf<'GET /overview'>;
export type WindowName = '15m' | '1h' | '24h';

export interface TailLine {
  readonly at: number;
  readonly state: 'ok' | 'waiting' | 'retrying' | 'parked' | 'refused';
  readonly says: string;
  readonly link: string;
}

/** The tail keeps so many lines. */
const linesMax = 200;
/** Without figures for so long, what is shown is stale. They come every 2 s while the store answers. */
const staleMs = 8000;

export const windowName = signal<WindowName>('1h');
export const overview = signal<Overview | undefined>(undefined);
export const lines = signal<readonly TailLine[]>([]);
/** The progress of operations that run, by id. */
export const progress = signal<Readonly<Record<string, { stage: string; counts: Record<string, number> }>>>(
  {},
);
/** The page holds still: nothing that comes is shown until it goes on. */
export const isHeld = signal(false);
export const waitingLines = signal(0);
/** When the last word and the last figures came, by the clock of this browser. */
const heardAt = signal(Date.now());
const figuresAt = signal(Date.now());
const tick = signal(Date.now());
export const isStale = computed(() => tick.value - figuresAt.value > staleMs);
/** The console answers, and says so every second: if the page is stale all the same, its store is away. */
export const isConnected = computed(() => tick.value - heardAt.value <= staleMs);
/** The store's clock minus the clock of this browser, which may be wrong. */
const clockOffsetMs = signal(0);

let source: EventSource | undefined;
let pending: TailLine[] = [];

/** The time of the store. */
export function storeNow(): number {
  return tick.value + clockOffsetMs.value;
}

/** Opens the stream while the page is visible: browsers allow six connections to a server. */
export function startLive(): () => void {
  const timer = setInterval(() => {
    tick.value = Date.now();
  }, 1000);
  const follow = () => (document.hidden ? closeSource() : openSource());
  document.addEventListener('visibilitychange', follow);
  const stopWatching = windowName.subscribe(() => {
    closeSource();
    follow();
  });
  return () => {
    clearInterval(timer);
    document.removeEventListener('visibilitychange', follow);
    stopWatching();
    closeSource();
  };
}

export function setHeld(held: boolean): void {
  batch(() => {
    isHeld.value = held;
    if (held) return;
    add(pending);
    pending = [];
    waitingLines.value = 0;
  });
}

function openSource(): void {
  if (source) return;
  source = new EventSource(`/api/v1/live?window=${windowName.value}`);
  const on = (type: string, heard: (data: never) => void) =>
    source?.addEventListener(type, (event) => {
      heardAt.value = Date.now();
      heard(JSON.parse((event as MessageEvent<string>).data) as never);
    });
  on('ping', () => {});
  on('figures', ({ overview: given }: { overview: Overview }) => {
    figuresAt.value = Date.now();
    clockOffsetMs.value = given.now - Date.now();
    if (!isHeld.value) overview.value = given;
  });
  on('notices', ({ lines: given }: { lines: TailLine[] }) => {
    if (isHeld.value) {
      pending = [...pending, ...given].slice(-linesMax);
      waitingLines.value = pending.length;
    } else add(given);
  });
  on('replay', ({ id, stage, counts }: { id: string; stage: string; counts: Record<string, number> }) => {
    progress.value = { ...progress.value, [id]: { stage, counts } };
  });
  on('reset', () => location.reload());
}

function closeSource(): void {
  source?.close();
  source = undefined;
}

function add(given: readonly TailLine[]): void {
  lines.value = [...given.toReversed(), ...lines.value].slice(0, linesMax);
}

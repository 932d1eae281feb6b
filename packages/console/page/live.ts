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

const linesMax = 200;
/** The page is stale if no figures came for this time. They come every 2 s while the store answers. */
const staleMs = 8000;

export const windowName = signal<WindowName>('1h');
export const overview = signal<Overview | undefined>(undefined);
export const lines = signal<readonly TailLine[]>([]);
/** The progress of running operations (such as replays), by id. */
export const progress = signal<Readonly<Record<string, { stage: string; counts: Record<string, number> }>>>(
  {},
);
/** True: the user has paused the page, and new data is not shown. */
export const isHeld = signal(false);
export const waitingLines = signal(0);
/**
 * The last message of any kind came at `heardAt`, the last figures at `figuresAt` (epoch ms of the browser).
 */
const heardAt = signal(Date.now());
const figuresAt = signal(Date.now());
const tick = signal(Date.now());
export const isStale = computed(() => tick.value - figuresAt.value > staleMs);
/** True: the console server sends its pings. If the page is stale nevertheless, the store is down. */
export const isConnected = computed(() => tick.value - heardAt.value <= staleMs);
/** How far the store's clock is ahead of the browser's clock, in ms. */
const clockOffsetMs = signal(0);

let source: EventSource | undefined;
let pending: TailLine[] = [];

/** Epoch ms by the store's clock. */
export function storeNow(): number {
  return tick.value + clockOffsetMs.value;
}

/**
 * Opens the event stream only while the page is visible, because browsers allow only six connections to a
 * server.
 */
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

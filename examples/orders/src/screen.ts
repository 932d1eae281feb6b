import type { TopicCounts } from '@holdfast/contracts';
import type { ConsumerState } from '@holdfast/events';

export interface Scene {
  readonly file: string;
  readonly sold: number;
  readonly consumer: ConsumerState;
  readonly lag: TopicCounts;
  readonly parked: number;
  readonly payment: string;
  readonly charges: { readonly made: number; readonly repeated: number };
  readonly view: Readonly<Record<string, number>>;
}

/** What is happening, as lines for a terminal. */
export function picture({ file, sold, consumer, lag, parked, payment, charges, view }: Scene): string[] {
  const { counters, running, status } = consumer;
  const { ready, delayed, behind, leased, suspect } = lag;
  const reasons = Object.entries(counters.parkedBecause).map(([reason, count]) => `${reason} ${count}`);
  const rows = Object.entries(view).map(([state, count]) => `${state} ${count}`);
  const rate = `${(100 * counters.dlqRate).toFixed(1)} %`;
  return [
    `orders      ${sold} sold; view: ${rows.join(', ') || 'empty'}`,
    `payment     ${payment}; ${charges.made} charged, ${charges.repeated} asked for again and not charged twice`,
    `consumer    ${status}, ${running} handlers at work, ${counters.succeeded} events done`,
    `waiting     ${ready} ready (oldest ${Math.round(lag.oldestReadyMs)} ms), ${delayed} delayed, ${behind} behind their key, ${leased + suspect} in hand`,
    `retries     ${counters.retryAttempts} attempts made again, ${counters.successAfterRetry} successes after retry, ${counters.snoozed} put off`,
    `parked      ${parked} now, dlq rate ${rate}${reasons.length > 0 ? `: ${reasons.join(', ')}` : ''}`,
    '',
    'In a second terminal:',
    `  export HOLDFAST_STORE=${file}`,
    '  npx holdfast dlq groups      npx holdfast dlq replay --stop "card declined"',
    '  npx holdfast topics ls       npx holdfast topics pause orders --why try',
  ];
}

/** Draws a picture over the one before it. A line that took two rows would not be drawn over: what is too long is cut. */
export function canvas(
  write: (text: string) => void,
  columns: () => number,
): (lines: readonly string[]) => void {
  let height = 0;
  return (lines) => {
    const up = height > 0 ? `\x1b[${height}A` : '';
    const width = columns();
    write(`${up}${lines.map((line) => `\x1b[2K${line.slice(0, width)}\n`).join('')}`);
    height = lines.length;
  };
}

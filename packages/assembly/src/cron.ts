import { OptionsError } from 'holdfast';

/** One due time of a schedule. */
export interface Occurrence {
  /** The due time, epoch ms. */
  readonly at: number;
  /**
   * The due time in local time, to the minute: `2026-10-25T01:30`. When the clock is set back, this time comes
   * twice, and both count as one.
   */
  readonly local: string;
}

interface Parts {
  readonly year: number;
  readonly month: number;
  readonly day: number;
  readonly weekday: number;
  readonly hour: number;
  readonly minute: number;
}

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
/** The rarest schedule, February 29 on a given weekday, has a due time at least every 40 years. */
const searchMaxMs = 41 * 366 * 24 * hourMs;

const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const weekdays = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];

/** The due times of a cron expression with five fields: minute, hour, day of the month, month, weekday. */
export class Cron {
  readonly #minutes: ReadonlySet<number>;
  readonly #hours: ReadonlySet<number>;
  readonly #days: ReadonlySet<number>;
  readonly #months: ReadonlySet<number>;
  readonly #weekdays: ReadonlySet<number>;
  /**
   * True if both day of the month and weekday are given. In this case, a day needs to match only one of them.
   */
  readonly #isEitherDay: boolean;
  readonly #partsOf: (at: number) => Parts;

  constructor(expression: string, timeZone = 'UTC') {
    const fields = typeof expression === 'string' ? expression.trim().toLowerCase().split(/\s+/) : [];
    if (fields.length !== 5) throw new OptionsError('cron', expression, 'five fields such as "0 3 * * mon"');
    const [minute, hour, day, month, weekday] = fields as [string, string, string, string, string];
    this.#minutes = read(expression, minute, 0, 59);
    this.#hours = read(expression, hour, 0, 23);
    this.#days = read(expression, day, 1, 31);
    this.#months = read(expression, month, 1, 12, months, 1);
    this.#weekdays = new Set([...read(expression, weekday, 0, 7, weekdays)].map((each) => each % 7));
    this.#isEitherDay = !day.startsWith('*') && !weekday.startsWith('*');
    this.#partsOf = partsIn(timeZone);
  }

  /** Returns the first occurrence after `time`; `undefined` if there is none, as for February 30. */
  after(time: number): Occurrence | undefined {
    let at = (Math.floor(time / minuteMs) + 1) * minuteMs;
    for (const end = at + searchMaxMs; at < end; ) {
      const parts = this.#partsOf(at);
      const restOfHourMs = (60 - parts.minute) * minuteMs;
      if (!this.#months.has(parts.month) || !this.#isDay(parts)) {
        // Skip only to the hour before midnight: a day on which the clock changes can be one hour shorter.
        at += Math.max(restOfHourMs, (23 - parts.hour) * hourMs + restOfHourMs - hourMs);
      } else if (!this.#hours.has(parts.hour)) at += restOfHourMs;
      else if (!this.#minutes.has(parts.minute)) at += minuteMs;
      else return { at, local: localText(parts) };
    }
    return undefined;
  }

  /** Returns the last occurrence at or before `time`, or `undefined` if there is none within a year. */
  latest(time: number): Occurrence | undefined {
    for (const windowMs of [hourMs, 24 * hourMs, 32 * 24 * hourMs, 366 * 24 * hourMs]) {
      let found: Occurrence | undefined;
      for (let next = this.after(time - windowMs); next && next.at <= time; next = this.after(next.at))
        found = next;
      if (found) return found;
    }
    return undefined;
  }

  #isDay({ day, weekday }: Parts): boolean {
    const isDay = this.#days.has(day);
    const isWeekday = this.#weekdays.has(weekday);
    return this.#isEitherDay ? isDay || isWeekday : isDay && isWeekday;
  }
}

function read(
  expression: string,
  field: string,
  min: number,
  max: number,
  names: readonly string[] = [],
  firstName = 0,
): Set<number> {
  const wrong = () =>
    new OptionsError('cron', expression, `fields such as "0 3 * * mon", and not "${field}"`);
  const numberIn = (text: string) => {
    const index = names.indexOf(text);
    const value = index >= 0 ? index + firstName : /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= min && value <= max)) throw wrong();
    return value;
  };
  const values = new Set<number>();
  for (const part of field.split(',')) {
    const match = /^([^/-]+)(?:-([^/-]+))?(?:\/(\d+))?$/.exec(part);
    if (!match) throw wrong();
    const [, first = '', last, every] = match;
    if (first === '*' && last !== undefined) throw wrong();
    const from = first === '*' ? min : numberIn(first);
    const to = first === '*' ? max : last !== undefined ? numberIn(last) : every !== undefined ? max : from;
    const step = every === undefined ? 1 : Number(every);
    if (step < 1 || from > to) throw wrong();
    for (let value = from; value <= to; value += step) values.add(value);
  }
  return values;
}

function partsIn(timeZone: string): (at: number) => Parts {
  if (timeZone === 'UTC') {
    return (at) => {
      const date = new Date(at);
      return {
        year: date.getUTCFullYear(),
        month: date.getUTCMonth() + 1,
        day: date.getUTCDate(),
        weekday: date.getUTCDay(),
        hour: date.getUTCHours(),
        minute: date.getUTCMinutes(),
      };
    };
  }
  let format: Intl.DateTimeFormat;
  try {
    format = new Intl.DateTimeFormat('en-US', {
      ...{ timeZone, hourCycle: 'h23', year: 'numeric', month: 'numeric', day: 'numeric' },
      ...{ hour: 'numeric', minute: 'numeric', weekday: 'short' },
    });
  } catch {
    throw new OptionsError('timeZone', timeZone, 'a time zone such as "Europe/Berlin"');
  }
  return (at) => {
    const parts = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, value]));
    return {
      year: Number(parts.year),
      month: Number(parts.month),
      day: Number(parts.day),
      weekday: weekdays.indexOf(String(parts.weekday).toLowerCase()),
      hour: Number(parts.hour),
      minute: Number(parts.minute),
    };
  };
}

function localText({ year, month, day, hour, minute }: Parts): string {
  const two = (value: number) => String(value).padStart(2, '0');
  return `${year}-${two(month)}-${two(day)}T${two(hour)}:${two(minute)}`;
}

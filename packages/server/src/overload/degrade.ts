import { type Clock, systemClock } from 'holdfast';
import { callback, count, duration, readTable, type SpecOf } from 'holdfast/fields';
import type { Exchange } from '../exchange.ts';
import type { Part } from '../part.ts';
import { type Answer, type HandlerAnswer, headerOf } from '../response.ts';

const fields = {
  staleFor: duration('60s'),
  rest: duration('1s'),
  fallback: callback<(exchange: Exchange, failed: HandlerAnswer) => Answer | undefined>(),
  scope: callback<(exchange: Exchange) => string | undefined>(),
  isFailure: callback<(answer: HandlerAnswer) => boolean>(),
  bytesMax: count(16 * 1024 * 1024, 0),
  answerMax: count(256 * 1024, 0),
};

export type DegradeOptions = SpecOf<typeof fields>;

export interface DegradePart extends Part {
  readonly counts: { stale: number; fallback: number };
  /** What the kept answers take. */
  readonly bytes: number;
}

interface Kept {
  readonly answer: Answer;
  /** What the request said in the headers that the answer depends on. */
  readonly varied: string;
  readonly at: number;
  readonly bytes: number;
  /** Since it last failed, until when nobody tries again; undefined while it works. */
  restsUntil: number | undefined;
  /** One tries whether it works again. */
  isTried: boolean;
}

/**
 * Something instead of nothing: when a GET fails, the last good answer, if it is young enough, or a fallback; both say what
 * they are. While there is a good answer, what fails is tried again by one request after a rest, and by no other meanwhile.
 * Answers to requests with an Authorization are kept only where `scope` says whose they are.
 */
export function degrade(
  options: DegradeOptions = {},
  environment: { readonly clock?: Clock | undefined } = {},
): DegradePart {
  const settings = readTable(fields, options, 'degrade.');
  const { staleFor, rest: restMs, fallback, scope: scopeOf, bytesMax, answerMax } = settings;
  const isFailure = settings.isFailure ?? (({ status }) => status >= 500);
  const { clock = systemClock } = environment;
  // In the order in which they were last kept: the oldest goes first.
  const kept = new Map<string, Kept>();
  const counts = { stale: 0, fallback: 0 };
  let bytes = 0;

  function forget(key: string): void {
    bytes -= kept.get(key)?.bytes ?? 0;
    kept.delete(key);
  }

  function keep(exchange: Exchange, key: string, answer: Answer): void {
    forget(key);
    const varied = variedBy(answer, exchange);
    const size = key.length + varied.length + (answer.body?.length ?? 0) + 200;
    if (size > bytesMax) return;
    kept.set(key, { answer, varied, at: clock.now(), bytes: size, restsUntil: undefined, isTried: false });
    bytes += size;
    for (const [oldest] of kept) {
      if (bytes <= bytesMax) break;
      forget(oldest);
    }
  }

  function stale(exchange: Exchange, key: string): Answer | undefined {
    const found = kept.get(key);
    if (!found || found.varied !== variedBy(found.answer, exchange)) return undefined;
    const ageMs = clock.now() - found.at;
    if (ageMs > staleFor) {
      forget(key);
      return undefined;
    }
    counts.stale++;
    return marked(found.answer, 'stale', { age: String(Math.floor(ageMs / 1000)) });
  }

  return {
    name: 'degrade',
    counts,
    get bytes() {
      return bytes;
    },
    enter(exchange) {
      const { method } = exchange;
      if (method !== 'GET' && method !== 'HEAD') return undefined;
      const scope = scopeOf?.(exchange);
      const isPrivate =
        exchange.header('authorization') !== undefined || exchange.header('cookie') !== undefined;
      // Hosts may be tenants.
      const place = `${method} ${exchange.host} ${exchange.url}`;
      const key = isPrivate && scope === undefined ? undefined : `${place}\n${scope ?? ''}`;
      const found = key === undefined ? undefined : kept.get(key);
      if (found?.restsUntil !== undefined) {
        const waits = found.isTried || exchange.nowBy(clock) < found.restsUntil;
        const old = waits ? stale(exchange, key!) : undefined;
        if (old) return old;
        found.isTried = true;
        exchange.onEnd(() => {
          found.isTried = false;
        });
      }
      exchange.holdAnswer(answerMax, (answer) => {
        if (!isFailure(answer)) {
          if (found) found.restsUntil = undefined;
          if (key !== undefined && isKeepable(answer)) keep(exchange, key, withoutRest(answer));
          return undefined;
        }
        const last = key === undefined ? undefined : kept.get(key);
        if (last) last.restsUntil = clock.now() + restMs;
        const old = key === undefined ? undefined : stale(exchange, key);
        if (old) return old;
        const instead = fallback?.(exchange, answer);
        if (!instead) return undefined;
        counts.fallback++;
        return marked(instead, 'fallback', {});
      });
      return undefined;
    },
  };
}

function isKeepable({ status, headers, body }: HandlerAnswer): boolean {
  if (status !== 200 || body === undefined) return false;
  if (headerOf(headers, 'vary')?.includes('*') || headers['set-cookie'] !== undefined) return false;
  return !/no-store|private/.test(headerOf(headers, 'cache-control') ?? '');
}

/** The values, in the request, of what an answer's `Vary` names: for who sends others it may be wrong. */
function variedBy({ headers }: Answer, exchange: Exchange): string {
  const names = headerOf(headers, 'vary')?.toLowerCase().split(',') ?? [];
  return names.map((name) => exchange.header(name.trim()) ?? '').join('\n');
}

/** Only what describes the content: the rest was said to one caller at one time. */
function withoutRest({ status, headers, body }: HandlerAnswer): Answer {
  const kept = Object.entries(headers).filter(([name]) =>
    /^(content-|etag|last-modified|link|vary)/.test(name),
  );
  return { status, headers: Object.fromEntries(kept), body: body ?? null };
}

function marked(answer: Answer, how: string, more: Record<string, string>): Answer {
  return {
    ...answer,
    headers: { ...answer.headers, 'x-degraded': how, 'cache-control': 'no-store', ...more },
  };
}

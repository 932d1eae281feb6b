import { useEffect, useRef, useState } from 'preact/hooks';
import type { AnswerOf, Question, RouteName } from '../src/api/routes.ts';
import { type ApiError, ask } from './api.ts';
import { isHeld, isStale } from './live.ts';

export interface Answered<Name extends RouteName> {
  /** The last successful answer. It stays while a new request runs, and if that request fails. */
  readonly answer: AnswerOf<Name> | undefined;
  readonly error: ApiError | Error | undefined;
  /** True: a request has been running for more than 300 ms. */
  readonly isSlow: boolean;
  again(): void;
}

const slowMs = 300;

/**
 * Sends a request to the API. Repeats it every `everyMs` and when `question` changes, except while the page
 * is paused. Without a `question`, no request is sent.
 */
export function useAnswer<Name extends RouteName>(
  name: Name,
  ...given: [question?: Partial<Question<Name>> | undefined, everyMs?: number]
): Answered<Name> {
  const [question, everyMs = 0] = given.length === 0 ? [{}] : given;
  const [answer, setAnswer] = useState<AnswerOf<Name>>();
  const [error, setError] = useState<Error>();
  const [isSlow, setSlow] = useState(false);
  const [round, setRound] = useState(0);
  const asked = question && JSON.stringify(question);
  const last = useRef<string | undefined>(undefined);
  const isAsking = useRef(false);

  useEffect(() => {
    if (asked === undefined) return;
    const controller = new AbortController();
    if (last.current !== asked) {
      // The question has changed, so the old answer does not belong to it.
      if (last.current !== undefined) setAnswer(undefined);
      last.current = asked;
    }
    const slow = setTimeout(() => setSlow(true), slowMs);
    const { signal } = controller;
    isAsking.current = true;
    ask(name, { ...(JSON.parse(asked) as Partial<Question<Name>>), signal })
      .then((given) => {
        setAnswer(() => given);
        setError(undefined);
      })
      .catch((failure: Error) => {
        if (!signal.aborted) setError(failure);
      })
      .finally(() => {
        clearTimeout(slow);
        if (signal.aborted) return;
        isAsking.current = false;
        setSlow(false);
      });
    return () => {
      clearTimeout(slow);
      controller.abort();
    };
  }, [name, asked, round]);

  useEffect(() => {
    if (everyMs === 0) return;
    const timer = setInterval(() => {
      // A new request would abort one that the server has not answered yet. A slow server would never answer.
      if (!isAsking.current && !isHeld.peek() && !document.hidden) setRound((before) => before + 1);
    }, everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);

  // When the store answers again after an outage, repeat the request.
  const wasStale = useRef(false);
  const stale = isStale.value;
  useEffect(() => {
    if (wasStale.current && !stale) setRound((before) => before + 1);
    wasStale.current = stale;
  }, [stale]);

  return { answer, error, isSlow, again: () => setRound((before) => before + 1) };
}

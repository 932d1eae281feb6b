import { useEffect, useRef, useState } from 'preact/hooks';
import type { AnswerOf, Question } from '../../src/api/routes.ts';
import { ask } from '../api.ts';

export type ManyRoute = 'POST /replays' | 'POST /discards' | 'POST /restores' | 'POST /keeps';
export type Preview = NonNullable<AnswerOf<ManyRoute>['preview']>;

const changedMs = 250;

/**
 * Asks the server what an act (such as a replay) would do. Later previews and the act send the time of the
 * first preview, so that events that are parked later are left out.
 */
export function usePreview<Name extends ManyRoute>(
  name: Name,
  body: Question<Name>['body'] | undefined,
): { readonly preview: Preview | undefined; readonly error: string } {
  const [preview, setPreview] = useState<Preview>();
  const [error, setError] = useState('');
  const asOf = useRef<number>(undefined);
  const asked = body && JSON.stringify(body);
  useEffect(() => {
    if (asked === undefined) return;
    const controller = new AbortController();
    const timer = setTimeout(
      async () => {
        try {
          const { preview: given } = await ask(name, {
            body: { ...JSON.parse(asked), dry: true, ...(asOf.current && { asOf: asOf.current }) },
            signal: controller.signal,
          });
          asOf.current ??= given!.asOf;
          setPreview({ ...given!, asOf: asOf.current });
          setError('');
        } catch (failure) {
          if (!controller.signal.aborted) setError((failure as Error).message);
        }
      },
      asOf.current === undefined ? 0 : changedMs,
    );
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [name, asked]);
  return { preview, error };
}

import type { AnswerOf } from '../../src/api/routes.ts';
import { Glyph, type State } from '../parts/glyph.tsx';

type Check = NonNullable<AnswerOf<'POST /replays'>['preview']>['checks'][number];

const looks: Readonly<Record<Check['state'], readonly [State, string]>> = {
  good: ['ok', 'good'],
  bad: ['retrying', 'mind'],
  unknown: ['over', 'not known'],
};

/**
 * Shows the checks before an act (such as a replay), for example whether consumers run. A bad result is only
 * a warning.
 */
export function Checks({ checks }: { readonly checks: readonly Check[] }) {
  return (
    <ul class="checks" aria-label="Checks">
      {checks.map(({ name, state, says }) => {
        const [glyph, label] = looks[state];
        return (
          <li key={name}>
            <Glyph state={glyph} label={label} />
            <span>{state === 'bad' ? <b>{says}</b> : says}</span>
          </li>
        );
      })}
    </ul>
  );
}

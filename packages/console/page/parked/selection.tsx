import { useLocation } from 'preact-iso';
import type { AnswerOf } from '../../src/api/routes.ts';
import { grouped, many } from '../format.ts';
import { useKeys } from '../keys.ts';
import { ActButton, blockedBecause } from '../parts/act-dialog.tsx';
import { chosenFilter, everything, type Lot, withWords } from './lot-url.ts';
import { DiscardDialog, KeepDialog, ReplayDialog, RestoreDialog } from './many-dialogs.tsx';
import { MakeRuleDialog, RulesDialog } from './rules.tsx';

export function SelectionBar({
  lot,
  total,
  described,
  pickAll,
}: {
  readonly lot: Lot;
  readonly total: number | undefined;
  readonly described: string;
  readonly pickAll: () => void;
}) {
  const { url, route } = useLocation();
  const isChosen = lot.picks.length > 0;
  const open = (dialog: string) => route(withWords(url, { do: dialog }));
  const act = (dialog: string) => () => {
    if (isChosen && blockedBecause() === undefined) open(dialog);
  };
  const isDiscarded = lot.status === 'discarded';
  const isParked = lot.status === 'parked';
  useKeys({
    ...(isParked && {
      r: { says: 'replay what is chosen', run: act('replay') },
      d: { says: 'discard what is chosen', run: act('discard') },
    }),
    n: { says: 'keep what is chosen for longer', run: act('keep') },
  });
  if (!isChosen)
    return (
      <footer class="selection">
        <span>
          Choose rows with the boxes or <kbd>x</kbd>, or{' '}
          <button type="button" class="btn tiny" onClick={pickAll}>
            all {total === undefined ? '' : grouped(total)} that match <kbd>⇧x</kbd>
          </button>
        </span>
      </footer>
    );
  const isAll = lot.picks.includes(everything);
  return (
    <footer class="selection">
      <span role="status">
        <b>
          {isAll
            ? `All ${total === undefined ? '' : grouped(total)} that match`
            : many(lot.picks.length, lot.view === 'events' ? 'event' : 'group')}
        </b>{' '}
        chosen, {described}
      </span>
      <span class="acts">
        {isParked && (
          <>
            <ActButton isTiny isFirst onClick={() => open('replay')}>
              Replay… <kbd>r</kbd>
            </ActButton>
            <ActButton isTiny onClick={() => open('discard')}>
              Discard… <kbd>d</kbd>
            </ActButton>
          </>
        )}
        {isDiscarded && (
          <ActButton isTiny isFirst onClick={() => open('restore')}>
            Take back…
          </ActButton>
        )}
        <ActButton isTiny onClick={() => open('keep')}>
          Keep longer… <kbd>n</kbd>
        </ActButton>
        {isParked && lot.view === 'groups' && !isAll && (
          <ActButton isTiny onClick={() => open('rule')}>
            Make a rule…
          </ActButton>
        )}
        <button
          type="button"
          class="btn tiny bare"
          onClick={() => route(withWords(url, { pick: undefined }), true)}
        >
          Choose none
        </button>
      </span>
    </footer>
  );
}

/** Shows the dialog that the URL names. */
export function LotDialogs({
  lot,
  described,
  rules,
  done,
}: {
  readonly lot: Lot;
  readonly described: string;
  readonly rules: { readonly answer: AnswerOf<'GET /rules'> | undefined; again(): void };
  readonly done: () => void;
}) {
  const { url, route } = useLocation();
  const close = () => route(withWords(location.pathname + location.search, { do: undefined }), true);
  if (lot.dialog === 'rules')
    return rules.answer ? (
      <RulesDialog rules={rules.answer.items} close={close} changed={rules.again} />
    ) : null;
  const filter = chosenFilter(lot);
  if (!filter) return null;
  const props = {
    ...{ filter, of: described, close },
    done: () => {
      route(withWords(url, { do: undefined, pick: undefined }), true);
      done();
    },
  };
  switch (lot.dialog) {
    case 'replay':
      return <ReplayDialog {...props} />;
    case 'discard':
      return <DiscardDialog {...props} />;
    case 'restore':
      return <RestoreDialog {...props} />;
    case 'keep':
      return <KeepDialog {...props} />;
    case 'rule':
      return <MakeRuleDialog {...props} />;
    default:
      return null;
  }
}

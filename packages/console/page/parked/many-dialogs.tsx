import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { Question } from '../../src/api/routes.ts';
import { ask } from '../api.ts';
import { grouped, many, percent, span } from '../format.ts';
import { storeNow } from '../live.ts';
import { ActDialog } from '../parts/act-dialog.tsx';
import { tell } from '../toast.tsx';
import { Checks } from './checks.tsx';
import type { FilterWords } from './lot-url.ts';
import { stopReplay, undoOperation } from './operation-acts.ts';
import { type ManyRoute, type Preview, usePreview } from './use-preview.ts';

export interface ManyDialogProps {
  readonly filter: FilterWords;
  /** The selected events in words, such as "of PaymentRejected". */
  readonly of: string;
  readonly close: () => void;
  /** Called when the operation has started. */
  readonly done: () => void;
}

/** Replays the selected events: first a few as a test (canary), then the rest at a limited rate. */
export function ReplayDialog({ filter, of, close, done }: ManyDialogProps) {
  const [rate, setRate] = useState('50');
  const [canary, setCanary] = useState('5');
  const [stopAbove, setStopAbove] = useState('50');
  const [to, setTo] = useState('');
  const options = {
    rate: Number(rate),
    canary: Number(canary),
    stopAbove: Number(stopAbove) / 100,
    ...(to.trim() !== '' && { to: to.trim() }),
  };
  const wrong = wrongOption(options);
  const { preview, error } = usePreview(
    'POST /replays',
    wrong === undefined ? { filter, ...options } : undefined,
  );
  const count = preview?.count ?? 0;
  const hasCanary = options.canary > 0 && count > options.canary;
  return (
    <ActDialog
      title={preview ? `Replay ${many(count, 'event')} ${of}` : `Replay ${of}`}
      verb={`Replay ${grouped(count)}`}
      command={preview?.command}
      count={count}
      canSend={wrong === undefined && count > 0}
      close={close}
      act={async (why, key) => {
        const { operation } = await ask('POST /replays', {
          body: { filter, ...options, asOf: preview!.asOf, expected: count, why },
          headers: { 'idempotency-key': key },
        });
        const { id } = operation!;
        done();
        tell(`The replay of ${many(count, 'event')} has begun.`, () => void stopReplay(id), {
          undoSays: 'Stop it',
          link: { href: `/replays/${encodeURIComponent(id)}`, says: 'Show it' },
        });
      }}
    >
      <p class="soft">
        {hasCanary
          ? `${grouped(options.canary)} go first and are watched for 5 s. If all succeed the rest follows at ${rate} a second. `
          : `They go at ${rate} a second, without a canary. `}
        It stops by itself when more than {stopAbove} % of the latest 50 fail again. Each event keeps its id
        and its idempotency key.
      </p>
      <Asked
        preview={preview}
        error={wrong ?? error}
        none="None of them can be replayed: they are in a replay, or no longer parked."
      />
      {preview && <Checks checks={preview.checks} />}
      <div class="fields">
        <NumberField label="A second" value={rate} set={setRate} />
        <NumberField label="First (canary)" value={canary} set={setCanary} />
        <NumberField label="Stop above, %" value={stopAbove} set={setStopAbove} />
      </div>
      <label class="field">
        <span>To another topic</span>
        <input
          class="input mono"
          value={to}
          placeholder="each to its own topic"
          onInput={(event) => setTo(event.currentTarget.value)}
        />
      </label>
      {preview && (
        <p class="small quiet">
          About {span((count / options.rate) * 1000 + (hasCanary ? 5000 : 0))}
          {preview.topics.length > 0 &&
            `, in ${preview.topics.map(({ topic, count: its }) => `${topic} (${grouped(its)})`).join(', ')}`}
          . What is parked after this count is not part of it. A replay cannot be undone, only stopped.
        </p>
      )}
    </ActDialog>
  );
}

/** Discarded events can be restored until their retention time is over. */
export function DiscardDialog({ filter, of, close, done }: ManyDialogProps) {
  const { preview, error } = usePreview('POST /discards', { filter });
  return (
    <ChangeDialog
      {...{ preview, error, close, done, filter, of }}
      name="POST /discards"
      verb="Discard"
      what="discard"
      told={(count) => `${many(count, 'event')} discarded.`}
      isDestructive
    >
      <p class="soft">
        They will not be handled. They can be taken back while they are kept
        {preview?.undoUntil !== undefined && `: the latest of them until ${dayOf(preview.undoUntil)}`}.
      </p>
    </ChangeDialog>
  );
}

export function RestoreDialog({ filter, of, close, done }: ManyDialogProps) {
  const { preview, error } = usePreview('POST /restores', { filter });
  return (
    <ChangeDialog
      {...{ preview, error, close, done, filter, of }}
      name="POST /restores"
      verb="Take back"
      what="restore"
      told={(count) => `${many(count, 'event')} taken back.`}
    >
      <p class="soft">They are parked again, as they were before they were discarded.</p>
    </ChangeDialog>
  );
}

const keepSpans: readonly (readonly [days: number, says: string])[] = [
  [7, '7 days'],
  [30, '30 days'],
  [90, '90 days'],
  [365, 'a year'],
];

export function KeepDialog({ filter, of, close, done }: ManyDialogProps) {
  const [days, setDays] = useState(30);
  const forMs = days * 864e5;
  const { preview, error } = usePreview('POST /keeps', { filter, forMs });
  return (
    <ChangeDialog
      {...{ preview, error, close, done, filter, of }}
      name="POST /keeps"
      more={{ forMs }}
      verb="Keep"
      what="keep"
      told={(count) => `${many(count, 'event')} kept until ${dayOf(storeNow() + forMs)}.`}
    >
      <label class="field">
        <span>From now on for</span>
        <select value={days} onChange={(event) => setDays(Number(event.currentTarget.value))}>
          {keepSpans.map(([value, says]) => (
            <option key={value} value={value}>
              {says}
            </option>
          ))}
        </select>
      </label>
      <p class="soft">The store removes them {dayOf(storeNow() + forMs)}, and not before.</p>
    </ChangeDialog>
  );
}

interface ChangeDialogProps extends ManyDialogProps {
  readonly name: Exclude<ManyRoute, 'POST /replays'>;
  readonly verb: string;
  /** The name of the act in the audit log. */
  readonly what: string;
  readonly preview: Preview | undefined;
  readonly error: string;
  readonly told: (count: number) => string;
  readonly more?: object;
  readonly isDestructive?: boolean;
  readonly children: ComponentChildren;
}

function ChangeDialog(props: ChangeDialogProps) {
  const { name, verb, what, filter, of, preview, error, told, more = {}, children, close, done } = props;
  const count = preview?.count ?? 0;
  return (
    <ActDialog
      title={preview ? `${verb} ${many(count, 'event')} ${of}` : `${verb} ${of}`}
      verb={`${verb} ${grouped(count)}`}
      command={preview?.command}
      count={count}
      canSend={count > 0}
      isDestructive={props.isDestructive}
      close={close}
      act={async (why, key) => {
        const body = { filter, ...more, asOf: preview!.asOf, expected: count, why };
        const { operation } = await ask(name, {
          body: body as Question<typeof name>['body'],
          headers: { 'idempotency-key': key },
        });
        done();
        tell(told(count), () => void undoOperation(operation!.id, what));
      }}
    >
      {children}
      <Asked preview={preview} error={error} none="There is none of them left to change." />
      {preview && count > 0 && (
        <p class="small quiet">
          In {preview.topics.map(({ topic, count: its }) => `${topic} (${grouped(its)})`).join(', ')}. What is
          parked after this count is not part of it.
        </p>
      )}
    </ActDialog>
  );
}

function Asked({
  preview,
  error,
  none,
}: {
  readonly preview: Preview | undefined;
  readonly error: string;
  readonly none: string;
}) {
  if (error !== '')
    return (
      <p class="is-parked" role="alert">
        {error}
      </p>
    );
  if (!preview) return <p class="quiet">Counting…</p>;
  return preview.count === 0 ? <p role="alert">{none}</p> : null;
}

export function NumberField({
  label,
  value,
  set,
}: {
  readonly label: string;
  readonly value: string;
  readonly set: (value: string) => void;
}) {
  return (
    <label class="field">
      <span>{label}</span>
      <input
        class="input"
        inputMode="decimal"
        value={value}
        onInput={(event) => set(event.currentTarget.value)}
      />
    </label>
  );
}

function wrongOption(options: {
  readonly rate: number;
  readonly canary: number;
  readonly stopAbove: number;
}): string | undefined {
  if (!(options.rate > 0 && options.rate <= 100_000))
    return `A second: expected a number above 0, up to 100,000.`;
  if (!(Number.isInteger(options.canary) && options.canary >= 0 && options.canary <= 10_000))
    return `First: expected a whole number from 0 to 10,000.`;
  if (!(options.stopAbove >= 0 && options.stopAbove <= 1))
    return `Stop above: expected a number from 0 to 100, got ${percent(options.stopAbove, 0)}.`;
  return undefined;
}

export function dayOf(at: number): string {
  return new Date(at).toLocaleDateString(undefined, { day: 'numeric', month: 'long', year: 'numeric' });
}

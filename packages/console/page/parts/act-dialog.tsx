import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError } from '../api.ts';
import { grouped } from '../format.ts';
import { isStale } from '../live.ts';
import { mayOperate, session } from '../session.ts';

export interface ActDialogProps {
  readonly title: string;
  readonly children: ComponentChildren;
  /** The label of the button, with the number of events: "Discard 4,790". */
  readonly verb: string;
  readonly command?: string | undefined;
  /** How many events are affected. Above 10,000, the user must type the number to confirm. */
  readonly count?: number | undefined;
  /** True: the act destroys something, so the button that cancels is highlighted. */
  readonly isDestructive?: boolean | undefined;
  readonly defaultWhy?: string | undefined;
  /** False: the form is incomplete and cannot be sent. Default: true. */
  readonly canSend?: boolean | undefined;
  /** If `act` rejects, nothing was changed. The dialog then shows the error and keeps the typed text. */
  act(why: string, key: string): Promise<void>;
  close(): void;
}

const typedAbove = 10_000;

/**
 * Asks the user to confirm an act (such as a discard). It shows what will happen and the terminal command for
 * the same act, and asks for the reason. The key `Enter` does not start the act.
 */
export function ActDialog(props: ActDialogProps) {
  const { title, children, verb, command, count = 0, isDestructive, act, close } = props;
  const dialog = useRef<HTMLDialogElement>(null);
  const key = useRef(crypto.randomUUID());
  const [why, setWhy] = useState(props.defaultWhy ?? '');
  const [typed, setTyped] = useState('');
  const [error, setError] = useState('');
  const [isBusy, setBusy] = useState(false);
  const mustType = count > typedAbove;
  const blocked = blockedBecause();
  const isReady =
    !blocked &&
    !isBusy &&
    props.canSend !== false &&
    why.trim() !== '' &&
    (!mustType || typed.replaceAll(/\D/g, '') === String(count));

  useEffect(() => {
    const box = dialog.current;
    box?.showModal();
    return () => box?.close();
  }, []);

  async function send() {
    if (!isReady) return;
    setBusy(true);
    try {
      await act(why.trim(), key.current);
      close();
    } catch (failure) {
      setError(
        failure instanceof ApiError ? failure.message : `It was not sent: ${(failure as Error).message}.`,
      );
      setBusy(false);
    }
  }

  return (
    <dialog
      ref={dialog}
      aria-labelledby="act-title"
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
      onKeyDown={(event) => {
        if (event.key !== 'Enter' || event.target instanceof HTMLButtonElement) return;
        if (event.ctrlKey || event.metaKey) void send();
        if (!(event.target instanceof HTMLTextAreaElement)) event.preventDefault();
      }}
    >
      <header>
        <h2 id="act-title">{title}</h2>
      </header>
      <div class="body">
        {children}
        <label class="field">
          <span>Why? It is kept in the audit log.</span>
          <input
            class="input"
            value={why}
            onInput={(event) => setWhy(event.currentTarget.value)}
            maxLength={1000}
          />
        </label>
        {mustType && (
          <label class="field">
            <span>Type {grouped(count)} to go on.</span>
            <input
              class="input"
              inputMode="numeric"
              value={typed}
              onInput={(event) => setTyped(event.currentTarget.value)}
            />
          </label>
        )}
        {command !== undefined && <CommandLine command={`${command} --why ${shellWord(why || '…')}`} />}
        {(blocked ?? error) && (
          <p class="is-parked" role="alert">
            {blocked ?? error}
          </p>
        )}
      </div>
      <footer>
        <button type="button" class={isDestructive ? 'btn first' : 'btn'} onClick={close}>
          Leave it
        </button>
        <button
          type="button"
          class={isDestructive ? 'btn' : 'btn first'}
          disabled={!isReady}
          onClick={() => void send()}
        >
          {verb} <kbd class="wide">Ctrl ↵</kbd>
        </button>
      </footer>
    </dialog>
  );
}

/** The reason why the user cannot change anything at the moment; `undefined`: the user can. */
export function blockedBecause(): string | undefined {
  if (isStale.value)
    return 'What you see is old: the store or the console does not answer. Acts are off until it is back.';
  if (!mayOperate()) return `${session.value?.who ?? 'You'} may look. Acts need the token to operate.`;
  return undefined;
}

/**
 * A button for an act (such as a discard). If the user may not act, the button is still shown, and says why.
 */
export function ActButton({
  children,
  onClick,
  isFirst,
  isTiny,
}: {
  readonly children: ComponentChildren;
  readonly onClick: () => void;
  readonly isFirst?: boolean;
  readonly isTiny?: boolean;
}) {
  const blocked = blockedBecause();
  return (
    <button
      type="button"
      class={`btn${isFirst ? ' first' : ''}${isTiny ? ' tiny' : ''}`}
      aria-disabled={blocked !== undefined}
      title={blocked}
      onClick={() => {
        if (blocked === undefined) onClick();
      }}
    >
      {children}
    </button>
  );
}

export function CommandLine({ command }: { readonly command: string }) {
  const [isCopied, setCopied] = useState(false);
  return (
    <div class="command">
      <code>{command}</code>
      <button
        type="button"
        class="btn tiny"
        onClick={() => {
          void navigator.clipboard?.writeText(command).then(() => setCopied(true));
        }}
      >
        {isCopied ? 'Copied' : 'Copy'}
      </button>
    </div>
  );
}

function shellWord(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

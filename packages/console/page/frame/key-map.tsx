import { useEffect, useRef } from 'preact/hooks';
import { areKeysOn, keyActs } from '../keys.ts';

const places = [
  ['g o', 'overview'],
  ['g p', 'parking lot'],
  ['g r', 'replays'],
  ['g t', 'topics'],
  ['g y', 'policies'],
  ['g a', 'assemblies'],
  ['g w', 'gateway'],
  ['g s', 'simulator'],
  ['g u', 'audit'],
] as const;

/**
 * The list of keyboard shortcuts. They can be switched off, because speech input can trigger them by
 * accident.
 */
export function KeyMap({ close }: { readonly close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const box = dialog.current;
    box?.showModal();
    return () => box?.close();
  }, []);
  const acts = Object.entries(keyActs.value).map(([key, { says }]) => [key, says] as const);
  return (
    <dialog ref={dialog} aria-labelledby="keys-title" onClose={close}>
      <header>
        <h2 id="keys-title">Keys</h2>
      </header>
      <div class="body">
        <dl class="keys">
          {[...acts, ...places].map(([key, says]) => (
            <div key={key}>
              <dt>
                <kbd>{key}</kbd>
              </dt>
              <dd>{says}</dd>
            </div>
          ))}
        </dl>
        <label class="check">
          <input
            type="checkbox"
            checked={areKeysOn.value}
            onChange={(event) => {
              areKeysOn.value = event.currentTarget.checked;
              localStorage.setItem('holdfast-keys', event.currentTarget.checked ? 'on' : 'off');
            }}
          />
          Single keys act
        </label>
      </div>
      <footer>
        <button type="button" class="btn first" onClick={close}>
          Close
        </button>
      </footer>
    </dialog>
  );
}

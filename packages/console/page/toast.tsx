import { signal } from '@preact/signals';

export interface Toast {
  readonly says: string;
  readonly undo?: (() => void) | undefined;
  /** The label of the button that undoes the act. Default: "Undo". */
  readonly undoSays?: string | undefined;
  readonly link?: { readonly href: string; readonly says: string } | undefined;
}

export const toast = signal<Toast | undefined>(undefined);
const shownMs = 10_000;
let timer: ReturnType<typeof setTimeout> | undefined;

/** Shows a message for 10 seconds, with an undo button if `undo` is given. */
export function tell(says: string, undo?: () => void, more: Pick<Toast, 'undoSays' | 'link'> = {}): void {
  clearTimeout(timer);
  toast.value = { says, undo, ...more };
  timer = setTimeout(() => {
    toast.value = undefined;
  }, shownMs);
}

export function ToastBox() {
  const shown = toast.value;
  return (
    <output class="toast" hidden={!shown}>
      <span>{shown?.says}</span>
      {shown?.link && <a href={shown.link.href}>{shown.link.says}</a>}
      {shown?.undo && (
        <button
          type="button"
          class="btn tiny"
          onClick={() => {
            toast.value = undefined;
            shown.undo?.();
          }}
        >
          {shown.undoSays ?? 'Undo'} <kbd>z</kbd>
        </button>
      )}
    </output>
  );
}

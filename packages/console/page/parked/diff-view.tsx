import { type ChangeObject, diffLines, diffWordsWithSpace } from 'diff';

interface Line {
  readonly number: number | undefined;
  readonly kind: '' | 'del' | 'add' | 'gap';
  readonly parts: readonly { readonly text: string; readonly differs: boolean }[];
}

/** How many equal lines are shown before and after each change. */
const context = 3;

/**
 * Compares two texts side by side, by line and by word. A long equal part becomes one line with its length.
 */
export function DiffView({
  before,
  after,
  beforeSays,
  afterSays,
}: {
  readonly before: string;
  readonly after: string;
  readonly beforeSays: string;
  readonly afterSays: string;
}) {
  const { left, right } = sideBySide(before, after);
  return (
    <div class="diff">
      <Side says={beforeSays} lines={left} />
      <Side says={afterSays} lines={right} />
    </div>
  );
}

function Side({ says, lines }: { readonly says: string; readonly lines: readonly Line[] }) {
  return (
    <div>
      <h3>{says}</h3>
      <pre role="region" tabIndex={0} aria-label={says}>
        {lines.map(({ number, kind, parts }, index) => (
          <span key={index} class={`l ${kind}`} data-n={number ?? ''}>
            {parts.map(({ text, differs }, at) => (differs ? <b key={at}>{text}</b> : text))}
            {'\n'}
          </span>
        ))}
      </pre>
    </div>
  );
}

function sideBySide(before: string, after: string): { left: Line[]; right: Line[] } {
  const left: Line[] = [];
  const right: Line[] = [];
  const changes = diffLines(ended(before), ended(after));
  let [leftNumber, rightNumber] = [1, 1];
  for (let index = 0; index < changes.length; index++) {
    const change = changes[index]!;
    if (!change.added && !change.removed) {
      const lines = linesOf(change);
      const shown = shortened(lines, index > 0, index < changes.length - 1);
      for (const [at, text] of shown) {
        const parts = [{ text, differs: false }];
        const kind = at === undefined ? ('gap' as const) : ('' as const);
        left.push({ number: at === undefined ? undefined : leftNumber + at, kind, parts });
        right.push({ number: at === undefined ? undefined : rightNumber + at, kind, parts });
      }
      leftNumber += lines.length;
      rightNumber += lines.length;
      continue;
    }
    const next = changes[index + 1];
    const isPair = change.removed && next?.added;
    const removed = change.removed ? linesOf(change) : [];
    const added = change.added ? linesOf(change) : isPair ? linesOf(next) : [];
    if (isPair) index++;
    for (let at = 0; at < Math.max(removed.length, added.length); at++) {
      const [old, now] = [removed[at], added[at]];
      const words = diffWordsWithSpace(old ?? '', now ?? '');
      left.push(
        lineOf(
          'del',
          old,
          leftNumber,
          words.filter((word) => !word.added),
        ),
      );
      right.push(
        lineOf(
          'add',
          now,
          rightNumber,
          words.filter((word) => !word.removed),
        ),
      );
      if (old !== undefined) leftNumber++;
      if (now !== undefined) rightNumber++;
    }
  }
  return { left, right };
}

function lineOf(
  kind: 'del' | 'add',
  text: string | undefined,
  number: number,
  words: readonly ChangeObject<string>[],
): Line {
  if (text === undefined) return { number: undefined, kind: 'gap', parts: [] };
  return {
    ...{ number, kind },
    parts: words.map((word) => ({ text: word.value, differs: word.added || word.removed })),
  };
}

/** Shortens a part that is equal in both texts. One line says how many lines in the middle are left out. */
function shortened(
  lines: readonly string[],
  isAfterChange: boolean,
  isBeforeChange: boolean,
): (readonly [at: number | undefined, text: string])[] {
  const numbered = lines.map((text, at) => [at, text] as const);
  const head = isAfterChange ? context : 0;
  const tail = isBeforeChange ? context : 0;
  const hidden = lines.length - head - tail;
  if (hidden <= 2 || (!isAfterChange && !isBeforeChange)) return numbered;
  return [
    ...numbered.slice(0, head),
    [undefined, `… ${hidden} equal lines`],
    ...(tail > 0 ? numbered.slice(-tail) : []),
  ];
}

function linesOf({ value }: ChangeObject<string>): string[] {
  return value.replace(/\n$/, '').split('\n');
}

function ended(text: string): string {
  return text.endsWith('\n') ? text : `${text}\n`;
}

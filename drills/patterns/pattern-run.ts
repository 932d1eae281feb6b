/** What the runs of a pattern give to its page. */
export interface PatternRun {
  /** The plots of the page, by the name of the file in `docs/plots/patterns`. */
  readonly plots: Readonly<Record<string, string>>;
  /** The texts of the page that name figures, by the name in their marks. A figure is written as `{name}`. */
  readonly texts: Readonly<Record<string, string>>;
  /** The figures of the runs, as the page prints them. */
  readonly figures: Readonly<Record<string, string>>;
}

/** The texts with their figures. */
export function rendered({ texts, figures }: PatternRun): Record<string, string> {
  return Object.fromEntries(
    Object.entries(texts).map(([name, text]) => [
      name,
      wrapped(
        text.trim().replaceAll(/\{(\w+)\}/g, (_, figure: string) => {
          const value = figures[figure];
          if (value === undefined) throw new TypeError(`There is no figure named ${figure}.`);
          return value;
        }),
      ),
    ]),
  );
}

/** Reads the figures of a text on a page. Undefined: the words around the figures are others. */
export function figuresIn(page: string, name: string, text: string): Record<string, string> | undefined {
  const pieces = text.trim().split(/\{(\w+)\}/);
  const names = pieces.filter((_, index) => index % 2 === 1);
  const pattern = pieces.map((piece, index) => (index % 2 === 1 ? '([^\\s|]+)' : words(piece))).join('');
  const found = new RegExp(`^${pattern}$`).exec(marked(name).exec(page)?.groups?.text?.trim() ?? '');
  return found ? Object.fromEntries(names.map((each, index) => [each, found[index + 1]!])) : undefined;
}

/** A pattern for these words, on however many lines. */
function words(text: string): string {
  return text
    .split(/\s+/)
    .map((word) => word.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'))
    .join('\\s+');
}

const LINE = 130;

/** Prose in lines of `LINE` characters, and each item of a list below the one before. A table stays as it is. */
function wrapped(text: string): string {
  if (text.startsWith('|')) return text;
  if (!text.startsWith('- ')) return paragraph(text);
  return text
    .split(/\n(?=- )/)
    .map((item) => paragraph(item).replaceAll('\n', '\n  '))
    .join('\n');
}

function paragraph(text: string): string {
  const lines = [''];
  // A number stays on the line of its unit.
  for (const word of text.split(/(?<!\d)\s+|\s+(?!(?:s|ms|%|×)(?:\W|$))/)) {
    const line = lines.at(-1)!;
    if (line !== '' && line.length + 1 + word.length > LINE) lines.push(word);
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`;
  }
  return lines.join('\n');
}

/** The page with a text in the place of the one between its marks. */
export function withText(page: string, name: string, text: string): string {
  if (!marked(name).test(page)) throw new TypeError(`The page has no marks for ${name}.`);
  return page.replace(marked(name), () => `<!-- ${name} -->\n\n${text}\n\n<!-- end of ${name} -->`);
}

function marked(name: string): RegExp {
  return new RegExp(`<!-- ${name} -->(?<text>[\\s\\S]*?)<!-- end of ${name} -->`);
}

/** A number with so many digits after the point, and a comma between thousands. */
export function shown(value: number, digits = 0): string {
  if (value === Infinity) return 'never';
  return value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' });

/** Characters that take two columns of a terminal: East Asian scripts and emoji. */
const wide =
  /^(?:[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation})/u;

/** The number of terminal columns that a text without line breaks takes. */
export function widthOf(text: string): number {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: texts of ASCII alone are the usual case
  if (/^[\x00-\x7f]*$/.test(text)) return text.length;
  let width = 0;
  for (const { segment } of graphemes.segment(text)) width += wide.test(segment) ? 2 : 1;
  return width;
}

/** Splits a text. The start fits into `width` columns, and has at least one character. */
export function splitAt(text: string, width: number): [start: string, rest: string] {
  let used = 0;
  for (const { segment, index } of graphemes.segment(text)) {
    used += widthOf(segment);
    if (used > width && index > 0) return [text.slice(0, index), text.slice(index)];
  }
  return [text, ''];
}

/** Breaks a word after a punctuation character such as `_` or `/`, if possible. */
function breakWord(word: string, width: number): [start: string, rest: string] {
  const [start] = splitAt(word, width);
  const mark = /^.*[^\w\s](?=\w)|^.*_(?=.)/u.exec(start)?.[0] ?? '';
  const length = mark.length * 3 >= start.length ? mark.length : start.length;
  return [word.slice(0, length), word.slice(length)];
}

export function oneLine(text: string, width: number): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return widthOf(line) <= width ? line : `${splitAt(line, width - 1)[0]}…`;
}

/**
 * Breaks a text between words. A word longer than a line is broken, too. With `keepWords`, it stays whole,
 * because users copy ids.
 */
export function wrapped(text: string, width: number, keepWords = false): string[] {
  const lines: string[] = [];
  let line = '';
  for (const whole of text.split(' ')) {
    let word = whole;
    if (line !== '' && widthOf(line) + 1 + widthOf(word) > width) {
      lines.push(line);
      line = '';
    }
    while (!keepWords && widthOf(word) > width) {
      const [start, rest] = breakWord(word, width);
      lines.push(start);
      word = rest;
    }
    line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

/** Wraps each line of a text. The continued lines are indented by `indent` more spaces. */
export function wrapText(text: string, width: number | undefined, indent = 0): string {
  if (width === undefined) return text;
  return text
    .split('\n')
    .map((line) => {
      const own = /^ */.exec(line)![0].length;
      const [first = '', ...rest] = wrapped(line.slice(own), width - own, true);
      const more = rest.length === 0 ? [] : wrapped(rest.join(' '), width - own - indent, true);
      return [' '.repeat(own) + first, ...more.map((each) => ' '.repeat(own + indent) + each)].join('\n');
    })
    .join('\n');
}

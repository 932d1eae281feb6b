/** A table of Markdown. A cell that is empty is a dash. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map(cell).join(' | ')} |`;
  return [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)].join('\n');
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll(/\s+/g, ' ').trim() || '–';
}

export function code(text: string): string {
  return text === '' ? '' : `\`${text}\``;
}

/** A page that nobody edits: its title, one sentence about it, and its parts. */
export function page(title: string, about: string, parts: readonly string[]): string {
  const note = 'Made from the sources by `npm run reference`; a test fails when this page is stale.';
  return `${[`# ${title}`, `${about} ${note}`, ...parts].join('\n\n')}\n`;
}

import type { Claim, Theme } from './claim.ts';

/** The text of each cell, by the id of the claim and the name of the contestant. */
export type CellText = (claim: Claim, name: string) => string;

const folder = '../bench/comparison';

/** The table of a theme in Markdown, with how each row was tried, and why some questions do not arise. */
export function tableOf(theme: Theme, cellText: CellText): string {
  const names = Object.keys(theme.contestants);
  const reasons = reasonsOf(theme);
  const rows = theme.claims.map((claim, index) => {
    const cells = names.map((name) => {
      const { [name]: trial } = claim.trials;
      return typeof trial === 'string' ? `– (${letterOf(reasons.indexOf(trial))})` : cellText(claim, name);
    });
    const sentence = `[${claim.sentence}](${folder}/${theme.file})`;
    return `| ${[index + 1, sentence, ...cells].join(' | ')} |`;
  });
  const labels = Object.values(theme.contestants).map(({ label }) => label);
  return [
    `| | | ${labels.join(' | ')} |`,
    `|${'---|'.repeat(labels.length + 2)}`,
    ...rows,
    '',
    ...(reasons.length > 0
      ? [`–: ${reasons.map((reason, index) => `(${letterOf(index)}) ${reason}`).join('; ')}.`, '']
      : []),
    ...theme.claims.map(({ how }, index) => `${index + 1}. ${how}`),
  ].join('\n');
}

/** The text of a cell of the page; `undefined`: the page has no such row. */
export function cellIn(page: string, theme: Theme, claim: Claim, name: string): string | undefined {
  const row = page.split('\n').find((line) => line.includes(`| [${claim.sentence}](`));
  return row?.split(' | ')[2 + Object.keys(theme.contestants).indexOf(name)]?.replace(/ \|$/, '');
}

function reasonsOf({ claims, contestants }: Theme): string[] {
  const found = claims.flatMap(({ trials }) => Object.keys(contestants).map((name) => trials[name]));
  return [...new Set(found.filter((each) => typeof each === 'string'))];
}

function letterOf(index: number): string {
  return String.fromCharCode('a'.charCodeAt(0) + index);
}

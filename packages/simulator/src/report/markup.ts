/** Escapes a text for HTML. The result is safe between tags and inside quotes. */
export function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

export function show(figure: number | null | undefined): string {
  if (figure === null || figure === undefined) return '–';
  const size = Math.abs(figure);
  if (size >= 1000) return Math.round(figure).toLocaleString('en');
  if (size >= 100) return figure.toFixed(0);
  return `${Number(figure.toPrecision(3))}`;
}

export function showSeconds(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined) return 'never';
  if (seconds > 0 && seconds < 1) return `${show(seconds * 1000)} ms`;
  return `${show(seconds)} s`;
}

export function showShare(share: number | null | undefined): string {
  if (share === null || share === undefined) return '–';
  const percent = 100 * share;
  return `${Number(percent.toFixed(percent > 99 || percent < 1 ? 2 : 1))} %`;
}

/** Terminals without colours show only the text, so the text alone must say everything. */
export type Style = 'bad' | 'warning' | 'good' | 'dim' | 'bold';

export interface StyledPiece {
  readonly text: string;
  readonly style: Style;
}

/** Text with pieces that have a style. As a string, it is the text without styles. */
export class StyledText {
  readonly pieces: readonly (string | StyledPiece)[];

  constructor(pieces: readonly (string | StyledPiece)[]) {
    this.pieces = pieces;
  }

  toString(): string {
    return this.pieces.map(plain).join('');
  }
}

export function bad(text: string): StyledPiece {
  return { text, style: 'bad' };
}

export function warning(text: string): StyledPiece {
  return { text, style: 'warning' };
}

export function good(text: string): StyledPiece {
  return { text, style: 'good' };
}

export function dim(text: string): StyledPiece {
  return { text, style: 'dim' };
}

export function bold(text: string): StyledPiece {
  return { text, style: 'bold' };
}

export function plain(piece: string | StyledPiece): string {
  return typeof piece === 'string' ? piece : piece.text;
}

/** Example: ``styled(bad('open'), ' for 3m')``. */
export function styled(...pieces: readonly (string | StyledPiece)[]): StyledText {
  return new StyledText(pieces);
}

export const styleCodes: Readonly<Record<Style, readonly [begin: string, end: string]>> = {
  bad: ['\x1b[31m', '\x1b[39m'],
  warning: ['\x1b[33m', '\x1b[39m'],
  good: ['\x1b[32m', '\x1b[39m'],
  dim: ['\x1b[2m', '\x1b[22m'],
  bold: ['\x1b[1m', '\x1b[22m'],
};

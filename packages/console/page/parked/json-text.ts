import { applyEdits, createScanner, format, type ParseError, parse, printParseErrorCode } from 'jsonc-parser';

/** The token kind that the scanner of `jsonc-parser` returns at the end of the text. */
const endOfFile = 17;

/**
 * Formats JSON with one line for each field. It does not parse the text, because that would round long
 * numbers.
 */
export function pretty(text: string): string {
  if (problemIn(text) !== undefined) return text;
  return applyEdits(text, format(text, undefined, { insertSpaces: true, tabSize: 2, eol: '\n' }));
}

export function compact(text: string): string {
  const scanner = createScanner(text, true);
  let packed = '';
  for (let kind = scanner.scan() as number; kind !== endOfFile; kind = scanner.scan())
    packed += text.slice(scanner.getTokenOffset(), scanner.getTokenOffset() + scanner.getTokenLength());
  return packed;
}

export interface JsonProblem {
  readonly says: string;
  readonly line: number;
  readonly column: number;
}

export function problemIn(text: string): JsonProblem | undefined {
  const errors: ParseError[] = [];
  parse(text, errors, { disallowComments: true, allowTrailingComma: false });
  const first = errors[0];
  if (!first) return undefined;
  const before = text.slice(0, first.offset).split('\n');
  return {
    says: sayings[printParseErrorCode(first.error)] ?? printParseErrorCode(first.error),
    line: before.length,
    column: before.at(-1)!.length + 1,
  };
}

const sayings: Readonly<Record<string, string>> = {
  InvalidSymbol: 'this is no value of JSON',
  InvalidNumberFormat: 'this is no number',
  PropertyNameExpected: 'expected a name in double quotes',
  ValueExpected: 'expected a value',
  ColonExpected: 'expected a colon',
  CommaExpected: 'expected a comma',
  CloseBraceExpected: 'expected a closing brace',
  CloseBracketExpected: 'expected a closing bracket',
  EndOfFileExpected: 'expected nothing more',
  InvalidCommentToken: 'JSON has no comments',
  UnexpectedEndOfComment: 'JSON has no comments',
  UnexpectedEndOfString: 'this text has no end',
  UnexpectedEndOfNumber: 'this number has no end',
  InvalidUnicode: 'expected four hexadecimal digits after \\u',
  InvalidEscapeCharacter: 'this character cannot be escaped',
  InvalidCharacter: 'this character must be escaped',
};

import { fnv1a } from 'holdfast';

/** Only the first 6 stack frames are hashed, because deeper frames depend on the caller. */
const framesMax = 6;
/** Only the first 12 fixed words of a message are hashed, because the end of a long message is often a quoted response. */
const wordsMax = 12;

/**
 * Removes the parts of a stack that differ between builds and machines. These are line numbers, absolute
 * folders, content hashes in file names, and frames of the runtime.
 */
export function normalizeStack(stack: string): string {
  return stack
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line.startsWith('at ') && !/\bnode:|<anonymous>$/.test(line))
    .slice(0, framesMax)
    .map(normalizeFrame)
    .join('\n');
}

/**
 * Returns the words of a message that are the same each time, and leaves out values. Values are what stands in
 * quotes or brackets, and all words with digits, punctuation or capital letters: `Customer Anna has no order 17` becomes
 * `customer has no order`. The first word that is kept may have capital letters.
 */
export function fixedWords(message: string): string {
  const words: string[] = [];
  for (const piece of message.replaceAll(quoted, ' ').split(/\s+/)) {
    const word = piece.replaceAll(/^\p{P}+|\p{P}+$/gu, '');
    if ((words.length === 0 ? firstWord : laterWord).test(word)) words.push(word.toLowerCase());
    if (words.length === wordsMax) break;
  }
  return words.join(' ');
}

const firstWord = /^[\p{L}\p{M}]+(?:['’]\p{L}+)?$/u;
const laterWord = /^[\p{Ll}\p{Lo}\p{M}]+(?:['’]\p{Ll}+)?$/u;
/** A single quote begins a quotation only if it is not an apostrophe. */
const quoted = /"[^"]*"|`[^`]*`|“[^”]*”|«[^»]*»|(?<!\p{L})'[^']*'(?!\p{L})|\([^)]*\)|\[[^\]]*\]|\{[^}]*\}/gu;

/**
 * Returns a hash of 16 hex digits. It is not cryptographic: an attacker can make two errors with the same
 * hash.
 */
export function fingerprint(type: string, normalized: string): string {
  const text = `${type}\n${normalized}`;
  return hash(text, 0x811c9dc5) + hash(text, 0x9747b28c);
}

function normalizeFrame(frame: string): string {
  const [, name, inside, bare = ''] = /^at (?:async |new )*(?:(.*) \((.*)\)|(.*))$/.exec(frame) ?? [];
  return name === undefined ? `at ${placeOf(bare)}` : `at ${name} (${placeOf(inside ?? '')})`;
}

/** Shortens a source location: `file:///srv/app/src/ship.ts?v=2:10:3` becomes `src/ship.ts`. */
function placeOf(location: string): string {
  const path = location
    .replace(/(:\d+)+$/, '')
    .replace(/[?#].*$/, '')
    .replaceAll('\\', '/')
    .replace(/[-.][0-9A-Fa-f]{8,}(?=\.\w+$)/, '');
  const installed = path.lastIndexOf('node_modules/');
  if (installed >= 0) return path.slice(installed);
  return /^(\/|[A-Za-z][\w+.-]*:)/.test(path) ? path.split('/').slice(-2).join('/') : path;
}

/**
 * Returns the FNV-1a hash of the text. The hash is mixed further, because the FNV-1a hashes of short texts
 * are too similar.
 */
function hash(text: string, seed: number): string {
  let state = fnv1a(text, seed);
  state = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
  state ^= state >>> 13;
  return (state >>> 0).toString(16).padStart(8, '0');
}

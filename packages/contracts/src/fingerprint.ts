import { fnv1a } from 'holdfast';

/**
 * Only the first 6 frames are used: deeper frames depend on the caller, and the same error may be reached from many
 * callers.
 */
const framesMax = 6;

/**
 * Returns the frames of a stack without the parts that differ between builds and machines: message, line, column,
 * folders above the project, content hashes, URL queries, and frames of the runtime. A normalised stack stays the same
 * when it is normalised again.
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
 * Returns a hash of 16 hex digits, equal for equal error types and stacks. It is not cryptographic: collisions can be
 * made on purpose.
 */
export function fingerprint(type: string, normalized: string): string {
  const text = `${type}\n${normalized}`;
  return hash(text, 0x811c9dc5) + hash(text, 0x9747b28c);
}

function normalizeFrame(frame: string): string {
  const [, name, inside, bare = ''] = /^at (?:async |new )*(?:(.*) \((.*)\)|(.*))$/.exec(frame) ?? [];
  return name === undefined ? `at ${placeOf(bare)}` : `at ${name} (${placeOf(inside ?? '')})`;
}

/**
 * Shortens a location: `file:///srv/app/src/ship.ts?v=2:10:3` becomes `src/ship.ts`. The result is never an absolute
 * path.
 */
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

/** Hashes with FNV-1a. The mixing steps after it spread the hashes of short texts over all values. */
function hash(text: string, seed: number): string {
  let state = fnv1a(text, seed);
  state = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
  state ^= state >>> 13;
  return (state >>> 0).toString(16).padStart(8, '0');
}

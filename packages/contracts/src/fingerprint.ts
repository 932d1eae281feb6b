import { fnv1a } from 'holdfast';

/** Only the first 6 frames count: deeper ones differ with the way to the same error. */
const framesMax = 6;

/**
 * The frames of a stack without what differs between builds and machines: the message, line and column, folders above the
 * project, content hashes, queries, frames of the runtime. Applied to its own result, it returns the same text.
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

/** A hash of 16 hex digits for errors that a person would call the same. Not cryptographic: collisions can be made on purpose. */
export function fingerprint(type: string, normalized: string): string {
  const text = `${type}\n${normalized}`;
  return hash(text, 0x811c9dc5) + hash(text, 0x9747b28c);
}

function normalizeFrame(frame: string): string {
  const [, name, inside, bare = ''] = /^at (?:async |new )*(?:(.*) \((.*)\)|(.*))$/.exec(frame) ?? [];
  return name === undefined ? `at ${placeOf(bare)}` : `at ${name} (${placeOf(inside ?? '')})`;
}

/** Makes `src/ship.ts` of `file:///srv/app/src/ship.ts?v=2:10:3`. The result is never an absolute path. */
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

/** FNV-1a with a final mixing step, so that short texts spread as well. */
function hash(text: string, seed: number): string {
  let state = fnv1a(text, seed);
  state = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
  state ^= state >>> 13;
  return (state >>> 0).toString(16).padStart(8, '0');
}

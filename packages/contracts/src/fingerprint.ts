/** Frames that say where an error is from; deeper ones differ with the way that led there. */
const framesMax = 6;

/**
 * The frames of a stack, without what changes from build to build and machine to machine: the message, line and column,
 * folders above the project, content hashes, queries, frames of the runtime. Pure; of what it gave it gives the same again.
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

/** Names what a person would call the same error: 16 hex digits. Not for secrets: anyone can make two of the same. */
export function fingerprint(type: string, normalized: string): string {
  const text = `${type}\n${normalized}`;
  return hash(text, 0x811c9dc5) + hash(text, 0x9747b28c);
}

function normalizeFrame(frame: string): string {
  const [, name, inside, bare = ''] = /^at (?:async |new )*(?:(.*) \((.*)\)|(.*))$/.exec(frame) ?? [];
  return name === undefined ? `at ${placeOf(bare)}` : `at ${name} (${placeOf(inside ?? '')})`;
}

/** `src/ship.ts` of `file:///srv/app/src/ship.ts?v=2:10:3`: what is left is short and never absolute. */
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

/** FNV-1a with a last stir, so that short texts spread as well. */
function hash(text: string, seed: number): string {
  let state = seed;
  for (let index = 0; index < text.length; index++) {
    state = Math.imul(state ^ text.charCodeAt(index), 0x01000193);
  }
  state = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
  state ^= state >>> 13;
  return (state >>> 0).toString(16).padStart(8, '0');
}

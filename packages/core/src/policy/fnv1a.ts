/**
 * Returns the 32-bit FNV-1a hash of a text. An attacker can easily find texts with the same hash. A different
 * `seed` gives a different hash.
 */
export function fnv1a(text: string, seed = 0x811c9dc5): number {
  let hash = seed;
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return hash >>> 0;
}

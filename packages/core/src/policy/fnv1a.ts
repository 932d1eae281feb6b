/**
 * The 32-bit hash FNV-1a of a text, for names that are only compared: it is not safe against attackers. `seed` gives
 * another hash of the same text.
 */
export function fnv1a(text: string, seed = 0x811c9dc5): number {
  let hash = seed;
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return hash >>> 0;
}

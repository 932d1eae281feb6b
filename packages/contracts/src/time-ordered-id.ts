import type { Clock, Random } from 'holdfast';

/**
 * Returns a function that creates UUIDs of version 7. They sort by creation time, and stores insert them
 * faster than random ids.
 */
export function timeOrderedId(clock: Clock, random: Random): () => string {
  let lastMs = 0;
  let sequence = 0;
  return () => {
    const now = clock.epochMs();
    if (now > lastMs) {
      lastMs = now;
      // The sequence has 12 bits (4096 values). It starts below 2048, so at least 2048 ids fit into one
      // millisecond.
      sequence = Math.floor(random() * 0x800);
    } else if (++sequence > 0xfff) {
      lastMs += 1;
      sequence = 0;
    }
    const time = lastMs.toString(16).padStart(12, '0');
    const variant = (8 + Math.floor(random() * 4)).toString(16);
    return `${time.slice(0, 8)}-${time.slice(8)}-7${hex(sequence, 3)}-${variant}${digits(random, 3)}-${digits(random, 12)}`;
  };
}

/** Returns when a time-ordered id was created, epoch ms. Returns `undefined` for other ids. */
export function timeOfId(id: string): number | undefined {
  return /^[0-9a-f]{8}-[0-9a-f]{4}-7/.test(id)
    ? Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
    : undefined;
}

function digits(random: Random, count: number): string {
  let text = '';
  for (let left = count; left > 0; left -= 6) {
    const length = Math.min(6, left);
    text += hex(Math.floor(random() * 16 ** length), length);
  }
  return text;
}

function hex(value: number, length: number): string {
  return value.toString(16).padStart(length, '0');
}

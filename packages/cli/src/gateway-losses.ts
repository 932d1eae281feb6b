import type { EnvoyLoss } from '@holdfast/gateway';
import { type Flag, type Given, UsageError } from './command.ts';
import { textOf } from './given-values.ts';
import { bad, type StyledText, styled, warning } from './styled-text.ts';
import { wrapText } from './text-width.ts';

export const dataPlaneFlag: Record<'data-plane', Flag> = {
  'data-plane': { value: 'node or envoy', says: 'what runs the file; node unless given' },
};

export function dataPlaneOf(given: Given): 'node' | 'envoy' {
  const plane = textOf(given, 'data-plane') ?? 'node';
  if (plane === 'node' || plane === 'envoy') return plane;
  throw new UsageError(`--data-plane: expected node or envoy, got "${plane}".`);
}

/** One line for each feature of a gateway file that Envoy does not have, or does in another way. */
export function lossLines(losses: readonly EnvoyLoss[], columns: number | undefined): StyledText[] {
  return losses.map(({ feature, kind, reason, where }) => {
    const text = wrapText(`${kind} ${feature} (${where.join(', ')}): ${reason}.`, columns, 2);
    return styled(kind === 'missing' ? bad(text) : warning(text));
  });
}

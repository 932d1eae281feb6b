import { policies } from 'holdfast';
import type { Labels, MetricKey } from './metrics.ts';
import type { Selection } from './selection.ts';

export interface Reading {
  readonly metric: MetricKey;
  readonly labels: Labels;
  readonly value: number;
}

const breakerStates = ['closed', 'open', 'half-open'] as const;

/** Reads the gauges of the selected policies. Policies without a name have no gauges. */
export function* readings(selection: Selection): Generator<Reading> {
  for (const { name: policy, killSwitch, enforcedShare = 1, targets } of policies()) {
    if (!selection(policy)) continue;
    yield { metric: 'killSwitch', labels: { policy }, value: Number(killSwitch) };
    yield { metric: 'enforcedRatio', labels: { policy }, value: enforcedShare };
    for (const { target: named, inFlight, queued, breaker, tokens } of targets) {
      const labels = { policy, target: named ?? undefined };
      yield { metric: 'inFlight', labels, value: inFlight };
      if (queued !== undefined) yield { metric: 'queued', labels, value: queued };
      if (tokens !== undefined) yield { metric: 'budgetTokens', labels, value: tokens };
      for (const state of breaker === undefined ? [] : breakerStates) {
        yield { metric: 'breakerState', labels: { ...labels, state }, value: Number(state === breaker) };
      }
    }
  }
}

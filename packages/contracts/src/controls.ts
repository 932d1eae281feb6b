import { assertDurationMs, assertName } from './for-engines.ts';
import { assertReason } from './parked-filter.ts';

/** Who does something, and why. Kept with what was done. */
export interface Act {
  readonly who: string;
  readonly why: string;
}

/** What an operator can impose on running consumers. */
export type Control =
  /** Nothing is leased. Obeyed by the engine. */
  | { readonly kind: 'pause'; readonly topic: string }
  /** The events of one tenant or one key are held, and the rest flows. Obeyed by the engine. */
  | { readonly kind: 'quarantine'; readonly topic: string; readonly tenant: string }
  | { readonly kind: 'quarantine'; readonly topic: string; readonly key: string }
  /** This event is parked instead of handled. Obeyed by consumers. */
  | { readonly kind: 'skip'; readonly topic: string; readonly eventId: string }
  /** Events (of one type) go to another topic instead of the handler. Obeyed by consumers. */
  | { readonly kind: 'reroute'; readonly topic: string; readonly to: string; readonly type?: string }
  /** How many events a consumer has in hand at once. Obeyed by consumers. */
  | { readonly kind: 'concurrency'; readonly topic: string; readonly concurrencyMax: number };

/** A control that is in force. */
export interface ActiveControl {
  /** `controlId(control)`: imposing the same thing twice is imposing it once. */
  readonly id: string;
  readonly control: Control;
  readonly act: Act;
  /** Epoch ms by the store's clock. */
  readonly since: number;
  /** When it ends by itself. */
  readonly until: number | undefined;
}

/** Stored in the engine, so that they reach every process that uses it. */
export interface Controls {
  /** Imposes it, or replaces the standing one of the same id. `forMs`: lifts itself after so long. */
  impose(control: Control, act: Act, forMs?: number): Promise<ActiveControl>;
  /** False: it did not stand. */
  lift(id: string, act: Act): Promise<boolean>;
  active(): Promise<ActiveControls>;
}

export interface ActiveControls {
  /** Grows with every change, never goes back. */
  readonly version: number;
  readonly controls: readonly ActiveControl[];
}

/** For engines, before a control is imposed. */
export function assertControl(control: Control, act: Act, forMs: number | undefined): void {
  assertReason(act);
  for (const [name, value] of Object.entries(control)) if (typeof value === 'string') assertName(name, value);
  assertDurationMs('forMs', forMs);
}

/** What a control is known by: what it is about, without what it says about it. */
export function controlId(control: Control): string {
  const parts: string[] = [control.kind, control.topic];
  if (control.kind === 'quarantine') {
    if ('tenant' in control) parts.push('tenant', control.tenant);
    else parts.push('key', control.key);
  }
  if (control.kind === 'skip') parts.push(control.eventId);
  if (control.kind === 'reroute' && control.type !== undefined) parts.push(control.type);
  // Half a character has no code of its own, and would throw.
  return parts.map((part) => encodeURIComponent(part.toWellFormed())).join(':');
}

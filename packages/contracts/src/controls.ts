import { assertDurationMs, assertName } from './for-engines.ts';
import { assertReason } from './parked-filter.ts';

/** Who does something, and why. Stored with what was done. */
export interface Act {
  readonly who: string;
  readonly why: string;
}

/** What an operator can impose on a topic and its consumers. */
export type Control =
  /** No event is leased. Obeyed by the engine. */
  | { readonly kind: 'pause'; readonly topic: string }
  /** Events of one tenant or one key are held back; others are leased. Obeyed by the engine. */
  | { readonly kind: 'quarantine'; readonly topic: string; readonly tenant: string }
  | { readonly kind: 'quarantine'; readonly topic: string; readonly key: string }
  /** One event is parked instead of handled. Obeyed by consumers. */
  | { readonly kind: 'skip'; readonly topic: string; readonly eventId: string }
  /** Events (of one type, or all) go to another topic instead of the handler. Obeyed by consumers. */
  | { readonly kind: 'reroute'; readonly topic: string; readonly to: string; readonly type?: string }
  /** The most handlers that each consumer runs at once. Obeyed by consumers. */
  | { readonly kind: 'concurrency'; readonly topic: string; readonly concurrencyMax: number };

/** A control that is in force. */
export interface ActiveControl {
  /** `controlId(control)`. Imposing a control with the same id replaces it. */
  readonly id: string;
  readonly control: Control;
  readonly act: Act;
  /** Epoch ms by the store's clock. */
  readonly since: number;
  /** When it ends by itself, epoch ms by the store's clock. */
  readonly until: number | undefined;
}

/** Controls are stored in the engine, so that they reach every process that uses it. */
export interface Controls {
  /** Imposes a control, or replaces the one with the same id. It ends by itself after `forMs`, if given. */
  impose(control: Control, act: Act, forMs?: number): Promise<ActiveControl>;
  /** False: there was no such control. */
  lift(id: string, act: Act): Promise<boolean>;
  active(): Promise<ActiveControls>;
}

export interface ActiveControls {
  /** Grows with every change. */
  readonly version: number;
  readonly controls: readonly ActiveControl[];
}

/** For engines: throws for a wrong control before it is imposed. */
export function assertControl(control: Control, act: Act, forMs: number | undefined): void {
  assertReason(act);
  for (const [name, value] of Object.entries(control)) if (typeof value === 'string') assertName(name, value);
  assertDurationMs('forMs', forMs);
}

/** The id of a control: its kind and what it applies to, without its value (the target of a reroute, the concurrency). */
export function controlId(control: Control): string {
  const parts: string[] = [control.kind, control.topic];
  if (control.kind === 'quarantine') {
    if ('tenant' in control) parts.push('tenant', control.tenant);
    else parts.push('key', control.key);
  }
  if (control.kind === 'skip') parts.push(control.eventId);
  if (control.kind === 'reroute' && control.type !== undefined) parts.push(control.type);
  // `encodeURIComponent` throws for a lone surrogate.
  return parts.map((part) => encodeURIComponent(part.toWellFormed())).join(':');
}

import { assertDurationMs, assertName } from './for-engines.ts';
import { assertReason } from './parked-filter.ts';

/** Who changes something, and why. The engine stores both with the change. */
export interface Act {
  readonly who: string;
  readonly why: string;
}

/** A restriction that an operator puts on a topic and its consumers. */
export type Control =
  /** The engine leases no event of the topic. */
  | { readonly kind: 'pause'; readonly topic: string }
  /** The engine leases no events of one tenant or one key; it leases all other events. */
  | { readonly kind: 'quarantine'; readonly topic: string; readonly tenant: string }
  | { readonly kind: 'quarantine'; readonly topic: string; readonly key: string }
  /** Consumers park this event (move it to the dead-letter store) instead of handling it. */
  | { readonly kind: 'skip'; readonly topic: string; readonly eventId: string }
  /** Consumers move events (of one type, or all) to the topic `to` instead of handling them. */
  | { readonly kind: 'reroute'; readonly topic: string; readonly to: string; readonly type?: string }
  /** Each consumer runs at most this many handlers at the same time. */
  | { readonly kind: 'concurrency'; readonly topic: string; readonly concurrencyMax: number };

export interface ActiveControl {
  /** The result of `controlId(control)`. A new control with the same id replaces this one. */
  readonly id: string;
  readonly control: Control;
  readonly act: Act;
  /** Epoch ms by the store's clock. */
  readonly since: number;
  /**
   * The time at which the control ends by itself, epoch ms by the store's clock; `undefined`: it ends only when it is
   * removed.
   */
  readonly until: number | undefined;
}

/**
 * Sets and removes operators' controls. The engine stores the controls, so that they apply in every process that uses
 * the engine.
 */
export interface Controls {
  /** Sets a control, or replaces the one with the same id. With `forMs`, the control ends after that time. */
  impose(control: Control, act: Act, forMs?: number): Promise<ActiveControl>;
  /** Removes a control. False: there was no control with this id. */
  lift(id: string, act: Act): Promise<boolean>;
  active(): Promise<ActiveControls>;
}

export interface ActiveControls {
  /** Increases with every change of the controls. */
  readonly version: number;
  readonly controls: readonly ActiveControl[];
}

/** Throws for an invalid control. Engines call it before they store the control. */
export function assertControl(control: Control, act: Act, forMs: number | undefined): void {
  assertReason(act);
  for (const [name, value] of Object.entries(control)) if (typeof value === 'string') assertName(name, value);
  assertDurationMs('forMs', forMs);
}

/**
 * Returns the id of a control: its kind and its target (topic, tenant, key, event or type), without its value (`to`,
 * `concurrencyMax`). So a control with a new value replaces the old control.
 */
export function controlId(control: Control): string {
  const parts: string[] = [control.kind, control.topic];
  if (control.kind === 'quarantine') {
    if ('tenant' in control) parts.push('tenant', control.tenant);
    else parts.push('key', control.key);
  }
  if (control.kind === 'skip') parts.push(control.eventId);
  if (control.kind === 'reroute' && control.type !== undefined) parts.push(control.type);
  // `toWellFormed` is needed because `encodeURIComponent` throws for a lone surrogate.
  return parts.map((part) => encodeURIComponent(part.toWellFormed())).join(':');
}

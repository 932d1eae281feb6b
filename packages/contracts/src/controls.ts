import { OptionsError } from 'holdfast';
import { type Subject, subject } from './audit.ts';
import { assertDurationMs, assertName } from './for-engines.ts';
import { assertReason } from './parked-filter.ts';

/** The person who makes a change, and the reason. The engine stores both with the change. */
export interface Act {
  readonly who: string;
  readonly why: string;
  /**
   * The id of the audit entry whose change is undone by this change. The engine rejects if that change was
   * already undone.
   */
  readonly undoes?: string;
}

/** A restriction that an operator puts on a topic and its consumers, or on a policy in every process. */
export type Control = TopicControl | PolicyControl;

/**
 * A control of one topic. The engine enforces `pause` and `quarantine`; consumers enforce the other kinds.
 */
export type TopicControl =
  /** The engine leases no event of the topic. */
  | { readonly kind: 'pause'; readonly topic: string }
  /**
   * The engine leases only first attempts of the topic: no retries, and no suspects (events whose lease
   * expired).
   */
  | { readonly kind: 'pause'; readonly topic: string; readonly only: 'retries' }
  /** The engine leases no events of one tenant or one key. */
  | { readonly kind: 'quarantine'; readonly topic: string; readonly tenant: string }
  | { readonly kind: 'quarantine'; readonly topic: string; readonly key: string }
  /** Consumers park this event (set it aside for an operator) instead of handling it. */
  | { readonly kind: 'skip'; readonly topic: string; readonly eventId: string }
  /** Consumers move events to the topic `to` instead of handling them. Without `type`, this applies to all events. */
  | { readonly kind: 'reroute'; readonly topic: string; readonly to: string; readonly type?: string }
  /** Each consumer runs at most this many handlers at the same time. */
  | { readonly kind: 'concurrency'; readonly topic: string; readonly concurrencyMax: number };

/** A control of the policy with this name. `policy: '*'` means every policy that has a name. */
export type PolicyControl =
  /**
   * Keeps circuit breakers of the policy open or closed. Without `target`, this applies to all hosts or
   * services that the policy calls.
   */
  | {
      readonly kind: 'breaker';
      readonly policy: string;
      readonly target?: string;
      readonly state: 'open' | 'closed';
    }
  /** Each call is attempted once, without retries and hedges. */
  | { readonly kind: 'retries'; readonly policy: string; readonly state: 'off' }
  /**
   * `observe`: the policy only reports what it would do. `enforce`: the policy acts, even if it was created
   * with `observe`.
   */
  | { readonly kind: 'mode'; readonly policy: string; readonly mode: 'enforce' | 'observe' };

/** A control that applies at present, with the operator who set it. */
export interface ActiveControl {
  /** The result of `controlId(control)`. A new control with the same id replaces the old one. */
  readonly id: string;
  readonly control: Control;
  readonly act: Act;
  /** Epoch ms by the store's clock. */
  readonly since: number;
  /** When the control ends by itself, epoch ms by the store's clock; `undefined`: never. */
  readonly until: number | undefined;
  /**
   * `ActiveControls.version` when this control was set. A process with a lower version does not know this
   * control yet.
   */
  readonly version: number;
}

/** Sets and removes operators' controls. They are stored, so every process that uses the store obeys them. */
export interface Controls {
  /** Sets a control, or replaces the control with the same id. `forMs` limits how long it applies. */
  impose(control: Control, act: Act, forMs?: number): Promise<ActiveControl>;
  /** Removes a control. Returns false if there is no control with this id. */
  lift(id: string, act: Act): Promise<boolean>;
  active(): Promise<ActiveControls>;
}

/** All controls that apply at present. While `version` is the same, the controls have not changed. */
export interface ActiveControls {
  /** Increases with every change of the controls. */
  readonly version: number;
  /** The time of this answer, epoch ms by the store's clock. */
  readonly now: number;
  readonly controls: readonly ActiveControl[];
}

type FieldCheck = readonly [isSo: (value: unknown) => boolean, what: string];

const isText = (value: unknown) => typeof value === 'string' && value !== '';
const text: FieldCheck = [isText, 'a text that is not empty'];
const optionalText: FieldCheck = [(value) => value === undefined || isText(value), text[1]];
const oneOf = (...values: readonly string[]): FieldCheck => [
  (value) => values.includes(value as string),
  values.join(' or '),
];

const fieldsOf: Readonly<Record<Control['kind'], Readonly<Record<string, FieldCheck>>>> = {
  pause: {
    topic: text,
    only: [(value) => value === undefined || value === 'retries', 'retries, or nothing'],
  },
  quarantine: { topic: text, tenant: optionalText, key: optionalText },
  skip: { topic: text, eventId: text },
  reroute: { topic: text, to: text, type: optionalText },
  concurrency: {
    topic: text,
    concurrencyMax: [
      (value) => Number.isSafeInteger(value) && (value as number) >= 0,
      'a whole number from 0',
    ],
  },
  breaker: { policy: text, target: optionalText, state: oneOf('open', 'closed') },
  retries: { policy: text, state: oneOf('off') },
  mode: { policy: text, mode: oneOf('enforce', 'observe') },
};

/** Throws for a control that cannot be imposed. */
export function assertControl(control: Control, act: Act, forMs: number | undefined): void {
  assertReason(act);
  const kind: unknown = control?.kind;
  if (typeof kind !== 'string' || !Object.hasOwn(fieldsOf, kind))
    throw new OptionsError('kind', kind, `one of ${Object.keys(fieldsOf).join(', ')}`);
  const fields = fieldsOf[control.kind];
  const given = control as unknown as Readonly<Record<string, unknown>>;
  for (const [name, [isSo, what]] of Object.entries(fields)) {
    if (!isSo(given[name])) throw new OptionsError(name, given[name], what);
    if (typeof given[name] === 'string') assertName(name, given[name]);
  }
  for (const name of Object.keys(given)) {
    if (name !== 'kind' && !Object.hasOwn(fields, name))
      throw new OptionsError(kind, name, `one of ${Object.keys(fields).join(', ')}`);
  }
  if (kind === 'quarantine' && (given.tenant === undefined) === (given.key === undefined))
    throw new OptionsError('quarantine', control, 'either a tenant or a key');
  assertDurationMs('forMs', forMs);
}

/**
 * Returns the id of a control. Values such as `to` or `state` are not part of it, so a new value replaces the
 * old control.
 */
export function controlId(control: Control): string {
  return [control.kind, ...idParts(control)]
    .filter((part) => part !== undefined)
    .map((part) => encodeURIComponent(part.toWellFormed())) // encodeURIComponent throws for a lone surrogate
    .join(':');
}

function idParts(control: Control): (string | undefined)[] {
  switch (control.kind) {
    case 'pause':
      return [control.topic, 'only' in control ? control.only : undefined];
    case 'quarantine':
      return 'tenant' in control && control.tenant !== undefined
        ? [control.topic, 'tenant', control.tenant]
        : [control.topic, 'key', (control as { key: string }).key];
    case 'skip':
      return [control.topic, control.eventId];
    case 'reroute':
      return [control.topic, control.type];
    case 'concurrency':
      return [control.topic];
    case 'breaker':
      return [control.policy, control.target];
    case 'retries':
    case 'mode':
      return [control.policy];
  }
}

/** Returns the topic of a control; `undefined` for a control of a policy. */
export function topicOf(control: Control): string | undefined {
  return 'topic' in control ? control.topic : undefined;
}

/** Returns the subjects of the audit entry of a control: the control, and its topic or policy. */
export function controlSubjects(control: Control): Subject[] {
  const about = 'topic' in control ? subject('topic', control.topic) : subject('policy', control.policy);
  return [subject('control', controlId(control)), about];
}

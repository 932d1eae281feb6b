import type { NewAssembly } from '@holdfast/contracts';
import { OptionsError } from 'holdfast';

/** The URL that is called when something happens to an assembly. */
export interface Notify {
  /** The URL to call. Required. */
  readonly url: string;
  /**
   * The name of a secret in `webhooks.secrets`, with which messages are signed. Only the name is stored.
   * Default: none.
   */
  readonly secret?: string | undefined;
  /** The types of notices to send. Default: `accepted`, `problem`, `done` and `stopped`. */
  readonly on?: readonly NoticeType[] | undefined;
}

/**
 * The type of a notice. After `done` or `stopped` an assembly sends no more notices, unless it is cancelled
 * after its end.
 */
export type NoticeType = 'accepted' | 'step' | 'problem' | 'done' | 'stopped';

export interface NoticeSource {
  readonly id: string;
  readonly name: string;
  readonly type: NoticeType;
  /** Identifies a notice within its assembly. It is the same in each run, so the notice is sent once. */
  readonly number: string;
  readonly step?: string | undefined;
  readonly because?: string | undefined;
  readonly at: number;
}

export const webhookProgram = 'holdfast.webhook';
const defaultTypes: readonly NoticeType[] = ['accepted', 'problem', 'done', 'stopped'];

const types: readonly string[] = ['accepted', 'step', 'problem', 'done', 'stopped'];

export function assertNotify(
  notify: Notify,
  webhooks: { readonly secrets?: Readonly<Record<string, unknown>> | undefined } = {},
): Notify {
  const { url, secret, on = [] } = notify;
  if (!URL.canParse(url)) throw new OptionsError('notify.url', url, 'a URL');
  if (secret !== undefined && !Object.hasOwn(webhooks.secrets ?? {}, secret))
    throw new OptionsError('notify.secret', secret, 'the name of a secret in webhooks.secrets');
  const unknown = on.find((type) => !types.includes(type));
  if (unknown !== undefined) throw new OptionsError('notify.on', unknown, `one of ${types.join(', ')}`);
  return notify;
}

/**
 * Returns the assembly that sends a notice. The assembly has one step, which is retried for days. If all
 * attempts fail, the assembly is parked.
 */
export function noticeStarts(
  { url, secret, on = defaultTypes }: Notify,
  source: NoticeSource,
): NewAssembly[] {
  const { id, name, type, number, step, because, at } = source;
  if (!on.includes(type)) return [];
  const data = { id, name, ...(step !== undefined && { step }), ...(because !== undefined && { because }) };
  const message = { type: `assembly.${type}`, timestamp: new Date(at).toISOString(), data };
  return [
    {
      id: `${id}/~notice/${number}`,
      name: webhookProgram,
      version: 1,
      input: JSON.stringify({ url, secret, message }),
    },
  ];
}

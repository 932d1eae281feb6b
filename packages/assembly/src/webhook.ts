import type { NewAssembly } from '@holdfast/contracts';
import { OptionsError } from 'holdfast';

/** Where the customer is told what happens. */
export interface Notify {
  /** The URL that is called. Required. */
  readonly url: string;
  /**
   * The name of a secret in `secrets`, with which messages are signed. Secrets themselves are not stored. Default:
   * none.
   */
  readonly secret?: string | undefined;
  /** What is told. Default: `accepted`, `problem`, `done` and `stopped`. */
  readonly on?: readonly NoticeType[] | undefined;
}

/** What a webhook tells of. `done` and `stopped` are the last of an assembly. */
export type NoticeType = 'accepted' | 'step' | 'problem' | 'done' | 'stopped';

export interface NoticeSource {
  readonly id: string;
  readonly name: string;
  readonly type: NoticeType;
  /** Tells notices of one assembly apart. The same notice has the same number in each run. */
  readonly number: string;
  readonly step?: string | undefined;
  readonly because?: string | undefined;
  readonly at: number;
}

export const webhookProgram = 'holdfast.webhook';
const defaultTypes: readonly NoticeType[] = ['accepted', 'problem', 'done', 'stopped'];

const types: readonly string[] = ['accepted', 'step', 'problem', 'done', 'stopped'];

/** Throws for a URL, a secret or a type that nobody could use later. */
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

/** A notice is an assembly of one step, which is retried for days and parked like any other. */
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

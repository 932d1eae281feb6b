import { lookup } from 'node:dns';
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { type Clock, type Duration, permanent, systemClock } from 'holdfast';
import { assembly, type Program } from './assembly.ts';
import { webhookProgram } from './webhook.ts';
import { assertSecret, signatureOf } from './webhook-signature.ts';

/** The options for sending webhooks. The store keeps only the name of a secret, never the secret. */
export interface WebhookOptions {
  /**
   * Secrets by name. If a name has several secrets, each signs the message, so that a receiver can change
   * from one to the next at any time. Default: none.
   */
  readonly secrets?: Readonly<Record<string, string | readonly string[]>> | undefined;
  /**
   * Decides which URLs may be called. If it returns true, private addresses and `http` are allowed as well.
   * Default: all that are public and `https`.
   */
  readonly allow?: ((url: URL) => boolean) | undefined;
  /** The timeout of one call. Default: `20s`. */
  readonly timeout?: Duration | undefined;
  /** The clock for all waits and timeouts. Default: the system's. */
  readonly clock?: Clock | undefined;
}

interface WebhookInput {
  readonly url: string;
  readonly secret?: string;
  readonly message: object;
}

/** A message is retried for about three days, because a receiver may be down for a weekend. */
const policy = {
  attempts: 16,
  backoff: { base: '5s', factor: 3, cap: '8h', jitter: 'equal' },
  retryOn: ['any'],
} as const;

/** The program that sends one webhook message. If all attempts fail, the assembly is parked. */
export function webhooks(options: WebhookOptions = {}): Program<WebhookInput, number> {
  const { timeout = '20s', clock = systemClock, allow } = options;
  const secrets = Object.entries(options.secrets ?? {}).map(([name, given]) => {
    const list = [given].flat() as string[];
    for (const secret of list) assertSecret(name, secret);
    return [name, list] as const;
  });
  const byName = new Map(secrets);
  return assembly(webhookProgram, { keep: '3d' }, (step, { url, secret, message }: WebhookInput) =>
    step.run(
      'send',
      async ({ key, signal }) => {
        const body = JSON.stringify(message);
        // The signed text is `id.timestamp.body`, so the id must not contain dots.
        const id = `msg_${Buffer.from(key).toString('base64url')}`;
        const timestamp = Math.floor(clock.epochMs() / 1000);
        const keys = secret === undefined ? [] : byName.get(secret);
        if (!keys) throw new Error(`this process has no secret of the name ${secret}`);
        const signed = keys.length > 0 && { 'webhook-signature': signatureOf(keys, id, timestamp, body) };
        const headers = { 'webhook-id': id, 'webhook-timestamp': String(timestamp), ...signed };
        return post(new URL(url), headers, body, signal, allow);
      },
      { policy, timeout },
    ),
  );
}

async function post(
  url: URL,
  headers: Readonly<Record<string, string>>,
  body: string,
  signal: AbortSignal,
  allow: ((url: URL) => boolean) | undefined,
): Promise<number> {
  const isAllowed = allow?.(url) ?? false;
  if (allow && !isAllowed) throw permanent(new Error(`webhooks to ${url.host} are not allowed`));
  if (url.protocol !== 'https:' && !isAllowed)
    throw permanent(new Error(`webhooks are sent by https only, and not to ${url.protocol}//${url.host}`));
  const host = url.hostname.replace(/^\[|\]$/g, '');
  if (!isAllowed && isIP(host) && isPrivate(host)) throw permanent(refusedAddress(url, host));
  const { status, retryAfter } = await send(
    url,
    headers,
    body,
    signal,
    isAllowed ? undefined : publicLookup(url),
  );
  // 410 (Gone) means that the receiver wants no more messages. Count the message as delivered.
  if ((status >= 200 && status < 300) || status === 410) return status;
  const error = new Error(`${url.host} answered a webhook with ${status}`);
  throw Object.assign(error, { status, headers: { ...(retryAfter && { 'retry-after': retryAfter }) } });
}

/**
 * Sends the message, and follows no redirects. `guarded` rejects a host name that leads to a private address.
 */
function send(
  url: URL,
  headers: Readonly<Record<string, string>>,
  body: string,
  signal: AbortSignal,
  guarded: LookupFunction | undefined,
): Promise<{ status: number; retryAfter: string | undefined }> {
  const request = url.protocol === 'https:' ? requestHttps : requestHttp;
  return new Promise((resolve, reject) => {
    const sent = request(
      url,
      {
        ...{ method: 'POST', signal, agent: false },
        headers: {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
          ...headers,
        },
        ...(guarded && { lookup: guarded }),
      },
      (response) => {
        response.resume();
        resolve({ status: response.statusCode ?? 0, retryAfter: response.headers['retry-after'] });
      },
    );
    sent.on('error', reject);
    sent.end(body);
  });
}

function publicLookup(url: URL): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      if (error) return callback(error, '', 4);
      const inside = addresses.find(({ address }) => isPrivate(address));
      if (inside) return callback(permanent(refusedAddress(url, inside.address)), '', 4);
      if (options.all) return callback(null, addresses);
      callback(null, addresses[0]!.address, addresses[0]!.family);
    });
  };
}

function refusedAddress(url: URL, address: string): Error {
  return new Error(`${url.hostname} is at ${address}, which is not a public address`);
}

const notPublic = new BlockList();
for (const [network, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 3],
] as const)
  notPublic.addSubnet(network, prefix, 'ipv4');
for (const [network, prefix] of [
  ['::', 127],
  ['fc00::', 7],
  ['fe80::', 10],
  ['ff00::', 8],
  ['64:ff9b::', 96],
  ['2002::', 16],
] as const)
  notPublic.addSubnet(network, prefix, 'ipv6');

function isPrivate(address: string): boolean {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  const plain = mapped ?? address;
  return notPublic.check(plain, isIP(plain) === 4 ? 'ipv4' : 'ipv6');
}

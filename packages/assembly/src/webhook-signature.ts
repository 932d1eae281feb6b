import { createHmac } from 'node:crypto';
import { OptionsError } from 'holdfast';

/**
 * Signs a message by Standard Webhooks 1.0: `v1,` and the base64 of an HMAC-SHA256 of id, timestamp and body.
 * With two secrets there are two signatures, so that a receiver can change its secret at any time.
 */
export function signatureOf(secrets: readonly string[], id: string, timestamp: number, body: string): string {
  return secrets
    .map(
      (secret) =>
        `v1,${createHmac('sha256', keyOf(secret)).update(`${id}.${timestamp}.${body}`).digest('base64')}`,
    )
    .join(' ');
}

/** Throws unless the secret is `whsec_` and the base64 of 24 to 64 bytes. The error does not show the secret. */
export function assertSecret(name: string, secret: string): void {
  const isText = typeof secret === 'string' && /^whsec_[A-Za-z0-9+/]+={0,2}$/.test(secret);
  const { length } = isText ? keyOf(secret) : [];
  if (!(length >= 24 && length <= 64))
    throw new OptionsError(
      `webhooks.secrets.${name}`,
      'another text',
      'whsec_ and the base64 of 24 to 64 bytes',
    );
}

function keyOf(secret: string): Buffer {
  return Buffer.from(secret.slice('whsec_'.length), 'base64');
}

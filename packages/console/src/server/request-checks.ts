import { Problem } from './problem.ts';

/** The most bytes of a request body. An edited payload of 1 MiB fits into it as JSON. */
const bodyBytesMax = Math.floor(1.25 * 1024 * 1024);

const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "font-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ');

export const securityHeaders: Readonly<Record<string, string>> = {
  'content-security-policy': policy,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
};

/**
 * With DNS rebinding, another website points its own host name to this address. Its requests then contain
 * that name, and are refused here.
 */
export function assertHost(request: Request, hosts: ReadonlySet<string>): void {
  const host = request.headers.get('host') ?? new URL(request.url).host;
  const name = host.toLowerCase().replace(/:\d+$/, '');
  if (hosts.has(name)) return;
  throw new Problem(
    'host',
    `"${name.slice(0, 100)}" is not served here; known are ${[...hosts].join(', ')}.`,
  );
}

/** Throws if a page of another website sent the request. Programs that are not browsers send no origin. */
export function assertOrigin(request: Request): void {
  const origin = request.headers.get('origin');
  const site = request.headers.get('sec-fetch-site');
  const own = request.headers.get('host');
  const isOwn = origin === null || (URL.canParse(origin) && new URL(origin).host === own);
  if (isOwn && (site === null || site === 'same-origin' || site === 'none')) return;
  throw new Problem('origin', `Requests from "${(origin ?? site ?? '').slice(0, 100)}" are refused.`);
}

export async function readJson(request: Request): Promise<unknown> {
  const type = request.headers.get('content-type') ?? '';
  const length = Number(request.headers.get('content-length') ?? 0);
  if (length > bodyBytesMax) throw tooLarge(length);
  const bytes = await readBytes(request);
  if (bytes.length === 0) return undefined;
  if (!/^application\/json\b/i.test(type))
    throw new Problem(
      'not-json',
      `The content type is "${type.slice(0, 100)}", and must be application/json.`,
    );
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (error) {
    throw new Problem('bad-question', `The body is not JSON: ${(error as Error).message}.`);
  }
}

async function readBytes(request: Request): Promise<Uint8Array> {
  if (!request.body) return new Uint8Array();
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of request.body) {
    bytes += part.length;
    if (bytes > bodyBytesMax) throw tooLarge(bytes);
    parts.push(part);
  }
  return Buffer.concat(parts);
}

function tooLarge(bytes: number): Problem {
  return new Problem('too-large', `The body has at least ${bytes} bytes; at most ${bodyBytesMax} are read.`);
}

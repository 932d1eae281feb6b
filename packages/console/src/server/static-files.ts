import { createHash } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

interface StaticFile {
  readonly type: string;
  readonly bytes: Buffer;
  /** Each encoding is created at its first request, because compressing all files takes a second. */
  readonly encoded: Map<'br' | 'gzip', Buffer>;
  readonly isText: boolean;
  readonly etag: string;
  /** True: the file name contains a hash of the content. So browsers can cache the file for ever. */
  readonly isImmutable: boolean;
}

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.woff2': 'font/woff2',
  '.json': 'application/json',
};

const encodings = ['br', 'gzip'] as const;

/**
 * Serves the files of a folder from memory. The path of a request is only looked up in a table, so it cannot
 * reach files outside of the folder.
 */
export class StaticFiles {
  readonly #files = new Map<string, StaticFile>();

  constructor(folder: string) {
    for (const name of globSync('**/*', { cwd: folder })) {
      const type = types[path.extname(name)];
      if (type === undefined) continue;
      const bytes = readFileSync(path.join(folder, name));
      this.#files.set(`/${name.replaceAll(path.sep, '/')}`, {
        ...{ type, bytes, isImmutable: /-[A-Z0-9]{8}\./.test(name) },
        ...{ isText: !/^(font\/|image\/png)/.test(type), encoded: new Map() },
        etag: `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`,
      });
    }
  }

  get isEmpty(): boolean {
    return this.#files.size === 0;
  }

  has(pathname: string): boolean {
    return this.#files.has(pathname);
  }

  response(pathname: string, request: Request): Response | undefined {
    const file = this.#files.get(pathname);
    if (!file) return undefined;
    const { type, etag, isImmutable } = file;
    const accepted = request.headers.get('accept-encoding') ?? '';
    const encoding = file.isText ? encodings.find((each) => accepted.includes(each)) : undefined;
    const body = encoding === undefined ? file.bytes : encodedAs(encoding, file);
    const headers = {
      'content-type': type,
      etag,
      'cache-control': isImmutable ? 'public, max-age=31536000, immutable' : 'no-cache',
      vary: 'accept-encoding',
      ...(encoding !== undefined && { 'content-encoding': encoding }),
    };
    if (request.headers.get('if-none-match') === etag) return new Response(null, { status: 304, headers });
    return new Response(request.method === 'HEAD' ? null : new Uint8Array(body), { headers });
  }
}

function encodedAs(encoding: (typeof encodings)[number], { encoded, bytes }: StaticFile): Buffer {
  const known = encoded.get(encoding);
  if (known) return known;
  const made =
    encoding === 'br'
      ? brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } })
      : gzipSync(bytes, { level: 9 });
  encoded.set(encoding, made);
  return made;
}

import { spawn } from 'node:child_process';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from './command.ts';

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: { readonly items?: readonly unknown[] };
  readonly result?: unknown;
  readonly error?: { readonly message: string };
}

/** Asks TypeScript's language server, as an editor does, for the hover at each offset of a file. */
export async function hoversAt(file: string, text: string, offsets: readonly number[]): Promise<string[]> {
  const folder = path.dirname(file);
  const server = spawn(
    process.execPath,
    [path.join(root, 'node_modules/typescript/bin/tsc'), '--lsp', '--stdio'],
    { cwd: folder, stdio: ['pipe', 'pipe', 'ignore'] },
  );
  const asked = new Map<number, PromiseWithResolvers<unknown>>();
  let received = Buffer.alloc(0);

  server.stdout.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    for (let message = next(); message; message = next()) hear(message);
  });
  server.on('exit', (code) => {
    for (const { reject } of asked.values())
      reject(new Error(`the language server ended with exit code ${code}`));
  });

  function next(): Message | undefined {
    const head = received.indexOf('\r\n\r\n');
    const [, length] =
      /Content-Length: (\d+)/i.exec(received.subarray(0, Math.max(0, head)).toString()) ?? [];
    const end = head + 4 + Number(length);
    if (length === undefined || received.length < end) return undefined;
    const message = JSON.parse(received.subarray(head + 4, end).toString()) as Message;
    received = received.subarray(end);
    return message;
  }

  function hear({ id, method, params, result, error }: Message): void {
    if (id === undefined) return;
    // A request of the server, for settings that this editor does not have.
    if (method !== undefined) send({ id, result: params?.items?.map(() => null) ?? null });
    else if (error) asked.get(id)?.reject(new Error(error.message));
    else asked.get(id)?.resolve(result);
  }

  function send(message: object): void {
    const content = JSON.stringify({ jsonrpc: '2.0', ...message });
    server.stdin.write(`Content-Length: ${Buffer.byteLength(content)}\r\n\r\n${content}`);
  }

  function ask(method: string, params: object): Promise<unknown> {
    const id = asked.size + 1;
    const answer = Promise.withResolvers<unknown>();
    asked.set(id, answer);
    send({ id, method, params });
    return answer.promise;
  }

  try {
    const uri = pathToFileURL(file).href;
    const capabilities = { textDocument: { hover: { contentFormat: ['plaintext'] } } };
    await ask('initialize', { processId: process.pid, rootUri: pathToFileURL(folder).href, capabilities });
    send({ method: 'initialized', params: {} });
    const textDocument = { uri, languageId: 'typescript', version: 1, text };
    send({ method: 'textDocument/didOpen', params: { textDocument } });
    const answers = offsets.map((offset) =>
      ask('textDocument/hover', { textDocument: { uri }, position: positionOf(text, offset) }),
    );
    const hovers = (await Promise.all(answers)) as ({ contents: { value: string } } | null)[];
    return hovers.map((hover) => hover?.contents.value ?? '');
  } finally {
    server.removeAllListeners('exit');
    server.kill();
  }
}

function positionOf(text: string, offset: number): { line: number; character: number } {
  const lines = text.slice(0, offset).split('\n');
  return { line: lines.length - 1, character: lines.at(-1)!.length };
}

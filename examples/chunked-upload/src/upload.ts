import { policy } from 'holdfast';

const chunkBytes = 64 * 1024;
const storage = policy({ name: 'storage', attempts: 3, patience: '5s' });

/** Sends the chunks that the server does not have. Call it again after a failure: it goes on with the failed chunk. */
export async function upload(url: string, content: Uint8Array, tell: (line: string) => void): Promise<void> {
  const count = Math.ceil(content.length / chunkBytes);
  const stored = await storage.run(({ signal }) => storedChunks(url, signal));
  tell(`the server has ${stored.size} of ${count} chunks`);
  for (let chunk = 0; chunk < count; chunk++) {
    if (stored.has(chunk)) continue;
    const bytes = content.slice(chunk * chunkBytes, (chunk + 1) * chunkBytes);
    await storage.run(
      async ({ attempt, signal }) => {
        // A failed attempt may have stored the chunk before its answer was lost. The server knows.
        if (attempt > 1 && (await storedChunks(url, signal)).has(chunk))
          return tell(`chunk ${chunk} was stored, only the answer was lost`);
        await request(`${url}/chunks/${chunk}`, { method: 'PUT', body: bytes, signal });
        tell(`chunk ${chunk} sent`);
      },
      { onWait: ({ because }) => tell(`chunk ${chunk} failed: ${because}; waiting`) },
    );
  }
}

async function storedChunks(url: string, signal: AbortSignal): Promise<Set<number>> {
  const response = await request(url, { signal });
  return new Set(((await response.json()) as { stored: number[] }).stored);
}

/** A status that is not good is an error, so that the policy can judge it. */
async function request(url: string, init: RequestInit): Promise<Response> {
  const response = await fetch(url, init);
  if (response.ok) return response;
  await response.body?.cancel();
  throw Object.assign(new Error(`${url} answered ${response.status}`), { status: response.status });
}

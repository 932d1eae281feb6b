import { randomBytes } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { printedInReadme, startExample } from '../../../scripts/examples/start-example.ts';
import { startStorage } from '../src/storage-server.ts';
import { upload } from '../src/upload.ts';

test('goes on from the failed chunk, and prints what the README shows', async () => {
  const example = await startExample('chunked-upload');
  expect(await example.ended).toBe(0);
  expect(example.output()).toBe(await printedInReadme('chunked-upload'));
});

test('no stored chunk is sent twice, and every byte arrives in its place', async () => {
  const storage = await startStorage();
  onTestFinished(() => storage.close());
  const content = randomBytes(500_001);
  const sent: string[] = [];
  const tell = (line: string) => void (line.endsWith('sent') && sent.push(line));

  await expect(upload(storage.url, content, tell)).rejects.toThrow('fetch failed');
  expect(sent.at(-1)).toBe('chunk 5 sent');
  storage.comeBack();
  await upload(storage.url, content, tell);

  expect(storage.content().equals(content)).toBe(true);
  expect(storage.repeated).toBe(0);
  expect(new Set(sent).size).toBe(sent.length);
});

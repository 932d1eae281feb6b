// An upload in chunks that fails in the middle, and goes on from the failed chunk.
import { createHash } from 'node:crypto';
import { storyOf } from 'holdfast';
import { startStorage } from './storage-server.ts';
import { upload } from './upload.ts';

const content = Buffer.alloc(500_000, 'a film, frame by frame. ');
const storage = await startStorage();
const tell = (line: string) => console.log(`  ${line}`);

console.log('first try');
await upload(storage.url, content, tell).catch((error) =>
  console.log(`gave up: ${storyOf(error)?.stop} after ${storyOf(error)?.attempts} attempts`),
);

storage.comeBack();
console.log('second try');
await upload(storage.url, content, tell);

const sum = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');
console.log(`complete: ${sum(storage.content()) === sum(content)}`);
console.log(`chunks that came again after they were stored: ${storage.repeated}`);
storage.close();

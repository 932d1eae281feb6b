import { readFileSync } from 'node:fs';
import path from 'node:path';

const file = path.join(import.meta.dirname, '..', 'package.json');

export const version: string = (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;

#!/usr/bin/env node
import { readFile } from 'node:fs/promises';
import process from 'node:process';
import { run } from './command.ts';

const ended = new Promise<void>((resolve) => {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve());
});

process.exitCode = await run(process.argv.slice(2), {
  env: process.env,
  out: (line) => console.log(line),
  err: (line) => console.error(line),
  readFile: (path) => readFile(path, 'utf8'),
  ended,
});

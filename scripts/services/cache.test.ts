import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { cached, isCached } from './cache.ts';

let home: string;
beforeEach(async () => {
  home = await mkdtemp(path.join(os.tmpdir(), 'holdfast-cache-'));
  vi.stubEnv('XDG_CACHE_HOME', home);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(home, { recursive: true });
});

const names = () => readdir(path.join(home, 'holdfast'));
const bread = (folder: string) => writeFile(path.join(folder, 'bread'), 'crumbs');

describe('the cache', () => {
  test('has what was made once', async () => {
    const make = vi.fn(bread);
    const places = await Promise.all([cached('loaf', make), cached('loaf', make)]);
    expect(make).toHaveBeenCalledOnce();
    expect(new Set(places).size).toBe(1);
    expect(await readFile(path.join(places[0]!, 'bread'), 'utf8')).toBe('crumbs');
    expect(await names()).toEqual(['loaf']);
  });

  test('keeps nothing of what failed, and tries it again', async () => {
    const make = async (folder: string) => {
      await bread(folder);
      throw new Error('burnt');
    };
    await expect(cached('loaf', make)).rejects.toThrow('burnt');
    expect(await names()).toEqual([]);
    await cached('loaf', bread);
    expect(isCached('loaf')).toBe(true);
  });

  test('takes over from a process that was killed', async () => {
    const folder = path.dirname(await cached('other', bread));
    const noProcess = String(2 ** 30);
    await writeFile(path.join(folder, 'loaf.lock'), noProcess);
    await cached('loaf', bread);
    expect(existsSync(path.join(folder, 'loaf.lock'))).toBe(false);
  });
});

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { classPath, digest, jarList, verifyJars } from './maven-jars.ts';

describe('jars', () => {
  test('are listed with where Maven finds them', () => {
    const list = jarList('kafka');
    expect(list.jars).toContainEqual({
      sha256: 'b098abef5ff878e76f60cd6c559b9baa5663ccb1b55f2837558b22c329d32423',
      group: 'org.apache.kafka',
      artifact: 'kafka_2.13',
      version: '4.3.1',
    });
    expect(classPath('/jars', list).split(path.delimiter)).toContain('/jars/kafka_2.13-4.3.1.jar');
  });

  test('with another checksum are refused', async () => {
    const folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-jars-'));
    const bread = { group: 'bakery', artifact: 'bread', version: '1', sha256: digest('crumbs') };
    await writeFile(path.join(folder, 'bread-1.jar'), 'crumbs');
    await verifyJars([bread], folder);
    await expect(verifyJars([{ ...bread, sha256: '00' }], folder)).rejects.toThrow(
      `bread-1.jar has the checksum ${bread.sha256}, and 00 was expected`,
    );
    await rm(folder, { recursive: true });
  });
});

import { expect, test } from 'vitest';
import { javaCommand } from './java-server.ts';
import { jarList } from './maven-jars.ts';

test('a server that is measured is compiled as in production', () => {
  const list = jarList('kafka');
  const plain = { list, programs: { java: 'java', jars: '/jars' }, main: 'kafka.Kafka' };
  const quickStart = '-XX:TieredStopAtLevel=1';
  expect(javaCommand(plain)).toContain(quickStart);
  expect(javaCommand({ ...plain, isMeasured: true })).not.toContain(quickStart);
});

import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { type HeavyServer, heavyLimit } from './heavy-limit.ts';

/** Servers are named after those who use them; `admitted` has the names of those that may start, in order. */
function setup(serversMax: number) {
  const limit = heavyLimit(serversMax);
  const admitted: string[] = [];
  function enter(name: string, ...users: string[]): HeavyServer {
    const server: HeavyServer = { users };
    void limit.enter(server).then(() => admitted.push(name));
    return server;
  }
  return { limit, admitted, enter };
}

describe('heavy servers', () => {
  test('wait in line when as many as may are running', async () => {
    const { limit, admitted, enter } = setup(2);
    const first = enter('first', 'a');
    enter('second', 'b');
    enter('third', 'c');
    enter('fourth', 'd');
    await turn();
    expect(admitted).toEqual(['first', 'second']);
    limit.leave(first);
    await turn();
    expect(admitted).toEqual(['first', 'second', 'third']);
  });

  test('are stopped for others when nobody uses them, and only then', async () => {
    const { limit, admitted, enter } = setup(2);
    const stopped: string[] = [];
    const idle = enter('idle', 'a');
    idle.stopIdle = async () => void stopped.push('idle');
    const busy = enter('busy', 'b');
    busy.stopIdle = async () => void stopped.push('busy');
    enter('next', 'c');
    enter('last', 'd');
    await turn();
    expect(stopped).toEqual([]);
    idle.users.pop();
    limit.look();
    await turn();
    expect(stopped).toEqual(['idle']);
    expect(admitted).toEqual(['idle', 'busy', 'next']);
  });

  test('are kept while there is room', async () => {
    const { limit, enter } = setup(2);
    const idle = enter('idle');
    idle.stopIdle = () => Promise.reject(new Error('stopped without need'));
    enter('next', 'a');
    limit.look();
    await turn();
  });

  test('are admitted above the limit when all who have one wait for one more', async () => {
    const { admitted, enter } = setup(2);
    enter('first', 'a');
    enter('second', 'b');
    enter('third', 'a');
    await turn();
    expect(admitted).toEqual(['first', 'second']);
    enter('fourth', 'b');
    await turn();
    expect(admitted).toEqual(['first', 'second', 'third']);
  });

  test('that are given up leave the line', async () => {
    const { limit, admitted, enter } = setup(1);
    const first = enter('first', 'a');
    const second = enter('second', 'b');
    enter('third', 'c');
    limit.leave(second);
    limit.leave(first);
    await turn();
    expect(admitted).toEqual(['first', 'third']);
  });
});

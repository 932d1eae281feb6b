import { memoryEngine } from '@holdfast/contracts/memory';
import { type ConsumerOptions, consumer } from '@holdfast/events';
import { describe, expect, test } from 'vitest';

const engine = memoryEngine();
const good = { engine, topic: 'orders', handler: () => {} };

describe('a consumer refuses, in one sentence that names field and value', () => {
  test.each<[object, string]>([
    [{ engine: undefined }, 'broker: expected a broker, or an engine that has one, got undefined'],
    [{ topic: '' }, 'topic: expected the name of a topic, got ""'],
    [{ handler: 'no' }, 'handler: expected a function, got "no"'],
    [{ concurrency: 0 }, 'concurrency: expected a whole number from 1, got 0'],
    [{ retriesShare: 2 }, 'retriesShare: expected a number from 0 to 1, got 2'],
    [{ effects: 'twice' }, 'effects: expected commit or once or off, got "twice"'],
    [{ ordering: 'time' }, 'ordering: expected none or key, got "time"'],
    [{ lease: '1 hour' }, 'lease: expected a duration such as "200ms", got "1 hour"'],
    [{ lease: 0 }, 'lease: expected at least 1 ms, got 0'],
    [{ parkedKeys: 'hold' }, 'parkedKeys: expected release or block, got "hold"'],
    [{ policy: { attempts: 0 } }, 'attempts: expected a whole number of at least 1'],
    [{ policy: { patience: '5s' } }, 'policy.patience: expected nothing'],
    [{ engine: undefined, broker: engine.broker, effects: 'once' }, 'ledger: expected a ledger'],
  ])('%o', (wrong, sentence) => {
    expect(() => consumer({ ...good, ...wrong } as ConsumerOptions)).toThrow(sentence);
  });
});

test('the policy is six attempts over half a minute, and a document changes parts of it', () => {
  const { policy } = consumer(good);
  expect(policy.settings).toMatchObject({
    attempts: 6,
    patience: Infinity,
    backoff: { base: 500, factor: 2, cap: 60_000, jitter: 'full' },
  });
  const other = consumer({ ...good, policy: { backoff: { base: '1s' } } }).policy;
  expect(other.settings).toMatchObject({ attempts: 6, backoff: { base: 1000, cap: 60_000 } });
});

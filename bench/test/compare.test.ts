import { expect, test } from 'vitest';
import { compare, type Subject, spreadOf } from '../compare.ts';
import { orderOf } from '../harness.ts';

const quick: Subject = { case: 'a case', unit: 'ns', better: 'lower' };
const much: Subject = { ...quick, better: 'higher' };

test('ratios are taken within a round, so that a slow round of the machine changes none', () => {
  const result = compare(quick, {
    floor: [10, 1000, 20],
    ours: [20, 2000, 40],
    peers: { cockatiel: [30, 3000, 60] },
  });

  expect(result.toFloor).toBe(2);
  expect(result.spread.toFloor).toMatchObject({ median: 2, p10: 2, p90: 2 });
  expect(result.spread.peersToFloor.cockatiel?.median).toBe(3);
  expect(result).toMatchObject({ floor: 20, ours: 40, peers: { cockatiel: 60 }, rounds: 3 });
});

test('ahead of the best peer is above 1, where lower is better', () => {
  const samples = { floor: [1], ours: [10], peers: { near: [15], far: [100] } };

  expect(compare(quick, samples)).toMatchObject({ toBestPeer: 1.5, bestPeer: 'near' });
});

test('ahead of the best peer is above 1, where higher is better', () => {
  const samples = { floor: [1], ours: [30], peers: { near: [20], far: [3] } };

  expect(compare(much, samples)).toMatchObject({ toBestPeer: 1.5, bestPeer: 'near' });
});

test('behind the best peer is below 1, whichever way is better', () => {
  expect(compare(quick, { floor: [1], ours: [10], peers: { a: [5] } }).toBestPeer).toBe(0.5);
  expect(compare(much, { floor: [1], ours: [10], peers: { a: [20] } }).toBestPeer).toBe(0.5);
});

test('toFloor is ours over floor, whichever way is better', () => {
  const samples = { floor: [10], ours: [5], peers: {} };

  expect(compare(quick, samples).toFloor).toBe(0.5);
  expect(compare(much, samples).toFloor).toBe(0.5);
});

test('without a peer there is no best one', () => {
  expect(compare(quick, { floor: [1], ours: [1], peers: {} })).toMatchObject({
    toBestPeer: null,
    bestPeer: null,
  });
});

test.each([
  [{ toFloorMax: 2 }, true, 2],
  [{ toFloorMax: 1.99 }, false, 2],
  [{ toFloorMax: 1.99, orAddedMax: 10 }, true, 2],
  [{ toFloorMax: 1.99, orAddedMax: 9 }, false, 2],
  [{ oursMax: 20 }, true, 20],
  [{ oursMax: 19 }, false, 20],
  [{ aheadOf: 'peer', times: 3 }, true, 3],
  [{ aheadOf: 'peer', times: 3.1 }, false, 3],
  [{ aheadOf: 'even', times: 1 }, false, 1],
] as const)('the bar %j is met: %s', (bar, met, value) => {
  const samples = { floor: [10], ours: [20], peers: { peer: [60], even: [20] } };

  expect(compare({ ...quick, bars: [bar] }, samples).bars).toEqual([{ bar: expect.any(String), value, met }]);
});

test('a bar about a peer that was not measured is a mistake', () => {
  const bars = [{ aheadOf: 'nobody', times: 2 }];

  expect(() => compare({ ...quick, bars }, { floor: [1], ours: [1], peers: {} })).toThrow('nobody');
});

test('contestants with unlike numbers of rounds are not compared', () => {
  expect(() => compare(quick, { floor: [1, 2], ours: [1], peers: {} })).toThrow('1 and 2');
});

test('a spread is the median and the middle eight tenths', () => {
  expect(spreadOf([5, 1, 4, 2, 3])).toEqual({ median: 3, p10: 1.4, p90: 4.6, ci95: [1, 5] });
  expect(spreadOf([7])).toEqual({ median: 7, p10: 7, p90: 7, ci95: [7, 7] });
  expect(() => spreadOf([])).toThrow('none');
});

test('the true median is told to lie where fair coins would put it, 95 times in 100', () => {
  const values = Array.from({ length: 61 }, (_, index) => index + 1);

  expect(spreadOf(values).ci95).toEqual([23, 39]);
});

test('over the rounds everyone goes first and everyone goes last, forwards and backwards', () => {
  const rounds = [0, 1, 2, 3, 4, 5].map((round) => orderOf(['a', 'b', 'c'], round).join(''));

  expect(rounds).toEqual(['abc', 'cba', 'bca', 'acb', 'cab', 'bac']);
});

import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parentPort } from 'node:worker_threads';
import { parsePolicies, parseScenario } from '@holdfast/config';
import { tryPolicy } from '@holdfast/simulator';
import type { StormJob } from './storm.ts';

parentPort!.on('message', ({ file, policy, seeds }: StormJob) => {
  const scenario = parseScenario(readFileSync(file, 'utf8'), file);
  const library = path.join(path.dirname(file), 'policies.yaml');
  const policies = parsePolicies(readFileSync(library, 'utf8'), library);
  const chosen = Array.from({ length: seeds }, (_, index) => scenario.seeds[index] ?? 7919 * (index + 1));
  parentPort!.postMessage(tryPolicy(scenario, policy, { policies, seeds: chosen }));
});

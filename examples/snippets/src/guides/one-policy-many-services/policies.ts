import { readFileSync, watch } from 'node:fs';
import { parsePolicies } from '@holdfast/config';
import { policy } from 'holdfast';

const file = 'config/policies.yaml';
const read = () => parsePolicies(readFileSync(file, 'utf8'), file);
const policies = new Map([...read()].map(([name, document]) => [name, policy(document)]));

export function policyNamed(name: string) {
  const found = policies.get(name);
  if (!found) throw new Error(`${file} has no policy "${name}"`);
  return found;
}

// Editors and Kubernetes replace the file by a new one. So its folder is watched, and not the file.
export const watcher = watch('config', () => {
  try {
    for (const [name, document] of read()) policies.get(name)?.update(document);
    console.log(`${file} is in force`);
  } catch (error) {
    console.error(`The policies stay as they are. ${error}`);
  }
});

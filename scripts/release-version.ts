import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { root } from './command.ts';

/** What speaks against a release under this tag: one sentence each. */
export function releaseComplaints(
  tag: string,
  versions: ReadonlyMap<string, string>,
  changelog: string,
): string[] {
  const version = tag.replace(/^v/, '');
  if (!/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version)) return [`"${tag}" is no version such as v0.1.0.`];
  const others = [...versions].filter(([, each]) => each !== version);
  const complaints = others.map(
    ([name, each]) => `${name} has version ${each}, and the tag says ${version}.`,
  );
  if (!changelog.includes(`## ${version}`)) complaints.push(`CHANGELOG.md has no part "## ${version}".`);
  return complaints;
}

if (import.meta.main) {
  const versions = new Map<string, string>();
  for (const file of globSync('{packages,engines}/*/package.json', { cwd: root })) {
    const manifest = JSON.parse(readFileSync(path.join(root, file), 'utf8')) as Record<string, string>;
    if (!manifest.private) versions.set(manifest.name!, manifest.version!);
  }
  const changelog = readFileSync(path.join(root, 'CHANGELOG.md'), 'utf8');
  const complaints = releaseComplaints(process.argv[2] ?? '', versions, changelog);
  for (const complaint of complaints) console.error(complaint);
  process.exitCode = complaints.length === 0 ? 0 : 1;
}

import { readdirSync, readFileSync } from 'node:fs';

/** Processor time of all threads of a process so far, in ns. `schedstat` begins with the time on the processor. */
export function cpuNsOf(pid: number): number {
  const folder = `/proc/${pid}/task`;
  return readdirSync(folder)
    .map((thread) => Number(readFileSync(`${folder}/${thread}/schedstat`, 'utf8').split(' ')[0]))
    .reduce((sum, ns) => sum + ns, 0);
}

/** A process and all processes that it has started, and those that they have started. */
export function processTree(pid: number): number[] {
  const children = Map.groupBy(
    readdirSync('/proc').filter((name) => /^\d+$/.test(name)),
    parentOf,
  );
  const tree = [pid];
  for (const each of tree) tree.push(...(children.get(each) ?? []).map(Number));
  return tree;
}

function parentOf(pid: string): number | undefined {
  try {
    // The name of the program stands in parentheses, and may have spaces: the fields after it do not.
    return Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ')[1]);
  } catch {
    return undefined; // The process has ended.
  }
}

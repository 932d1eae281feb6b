import { breathe } from '../harness.ts';
import { contestants } from './simulator/contestants.ts';

/** One contestant in a process of its own: runs a round on request, and answers with its time. */
const [, , name = ''] = process.argv;
const contestant = contestants[name];
if (!contestant) throw new RangeError(`There is no contestant "${name}".`);

process.once('disconnect', () => process.exit(0));
process.on('message', async (round: number) => process.send?.(await cpuNs(round)));

/** Processor time for each attempt. */
async function cpuNs(round: number): Promise<number> {
  await breathe();
  const before = process.cpuUsage();
  const attempts = await contestant!(round);
  const { user, system } = process.cpuUsage(before);
  return ((user + system) * 1000) / attempts;
}

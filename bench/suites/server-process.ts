import { serverFields } from './server/fields.ts';

/** Which server this process is. */
export interface ServerJob {
  readonly case: string;
  readonly contestant: string;
  readonly redisUrl: string | undefined;
}

process.once('message', async ({ case: name, contestant, redisUrl }: ServerJob) => {
  const field = serverFields(redisUrl).find((each) => each.name === name)!;
  const port = await field.contestants[contestant]!();
  process.on('message', () => {
    const { user, system } = process.cpuUsage();
    process.send?.((user + system) * 1000);
  });
  process.send?.(port);
});
process.once('disconnect', () => process.exit(0));

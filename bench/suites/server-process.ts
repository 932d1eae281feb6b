import { serverFields } from './server/fields.ts';

/** Which server this process is, beside the floor. */
export interface ServerJob {
  readonly case: string;
  readonly contestant: string;
  readonly redisUrl: string | undefined;
}

export interface ServerPorts {
  readonly floor: number;
  readonly contestant: number;
}

process.once('message', async ({ case: name, contestant, redisUrl }: ServerJob) => {
  const { contestants } = serverFields(redisUrl).find((each) => each.name === name)!;
  const ports: ServerPorts = {
    floor: await contestants.floor!(),
    contestant: await contestants[contestant]!(),
  };
  process.on('message', () => {
    const { user, system } = process.cpuUsage();
    process.send?.((user + system) * 1000);
  });
  process.send?.(ports);
});
process.once('disconnect', () => process.exit(0));

import { PgBoss } from 'pg-boss';

export async function mails(url: string, name: string, send: (to: string) => Promise<void>) {
  const boss = new PgBoss(url);
  boss.on('error', console.error);
  await boss.start();
  await boss.createQueue(`${name}-dead`);
  await boss.createQueue(name, { retryLimit: 2, retryDelay: 0, deadLetter: `${name}-dead` });
  await boss.work<{ to: string }>(name, { pollingIntervalSeconds: 0.5 }, async ([job]) => {
    if (job) await send(job.data.to);
  });
  return {
    enqueue: (to: string) => boss.send(name, { to }),
    failed: async () => (await boss.findJobs(`${name}-dead`)).length,
    stop: () => boss.stop({ graceful: true }),
  };
}

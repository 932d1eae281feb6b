import { proxies } from './gateway/node-proxies.ts';

/** One proxy for Node in a process of its own. */
export interface ProxyJob {
  readonly contestant: string;
  readonly upstream: string;
}

process.once('message', async ({ contestant, upstream }: ProxyJob) => {
  process.send?.(await proxies[contestant]!(upstream));
});
process.once('disconnect', () => process.exit(0));

import { policy, storyOf } from 'holdfast';
import { tellStory } from 'holdfast/explain';

const payments = policy({ name: 'payments', patience: '3s' });

/** Throws what the call threw last, untouched. */
export function charge(pay: (signal: AbortSignal) => Promise<string>): Promise<string> {
  return payments.run(({ signal }) => pay(signal), { target: 'eu-1', idempotent: false });
}

/** Never throws, and tells what happened. */
export async function tryToCharge(pay: () => Promise<string>): Promise<string> {
  const ending = await payments.try(pay);
  return ending.ok ? ending.value : tellStory(ending.story);
}

/** The same function, with the policy around each call of it. */
export const balanceOf = payments.wrap(async (customer: string) => `${customer} owes nothing`);

/** Of any error that came out of a run. */
export function whyItStopped(error: unknown): string | undefined {
  return storyOf(error)?.stop;
}

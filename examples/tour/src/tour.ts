// What Holdfast does, in a terminal and half a minute: run it with `npm start -- tour`.
import { policies, policy, storyOf } from 'holdfast';
import { explain, tellStory } from 'holdfast/explain';

const reset = () => Object.assign(new Error('connection reset'), { code: 'ECONNRESET' });

function heading(text: string): void {
  console.log(`\n\x1b[1m${text}\x1b[0m`);
}

heading('1. A call that fails twice, and gets done');
const orders = policy({ name: 'orders', patience: '5s' });
/** Stands for a service that refuses two calls and answers the third. */
function flakyService(): () => Promise<string> {
  let calls = 0;
  return async () => {
    calls++;
    if (calls < 3) throw Object.assign(new Error('connection reset'), { code: 'ECONNRESET' });
    return `order accepted on call ${calls}`;
  };
}

const ending = await orders.try(flakyService(), {
  onWait: ({ attempt, delayMs, because }) =>
    console.log(`   attempt ${attempt} was ${because}; the next one in ${Math.round(delayMs)} ms`),
});
console.log(`   ${ending.ok ? ending.value : 'it failed'}`);
console.log(tellStory(ending.story));

heading('2. A call that cannot succeed ends early, with the real error and the reason');
const impatient = orders.with({ name: 'impatient', patience: '300ms' });
try {
  await impatient.run(async () => {
    throw reset();
  });
} catch (error) {
  console.log(`   ${error}`);
  const story = storyOf(error);
  if (story) console.log(tellStory(story));
}

heading('3. A dead service: the breaker and the budget keep the load near one call each');
const dead = policy({ name: 'inventory', backoff: { base: '1ms' } });
for (let call = 0; call < 200; call++) {
  await dead.try(async () => {
    throw reset();
  });
}
for (const { name, counters, targets } of policies()) {
  const breaker = targets[0]?.breaker ?? 'no';
  const load = counters.loadMultiplication.toFixed(2);
  console.log(
    `   ${name}: ${counters.operations} calls, ${counters.attempts} attempts (${load} a call), breaker ${breaker}`,
  );
}

heading('4. What the policy does, in words');
console.log(String(explain(orders)));

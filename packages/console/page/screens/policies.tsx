import { grouped, inWords, percent, sentence } from '../format.ts';
import { Glyph } from '../parts/glyph.tsx';
import { Empty, Trouble } from '../parts/quiet.tsx';
import { breakersWord, modeWord, type PolicyState, successAfterRetry } from '../policies/policy-state.ts';
import { useAnswer } from '../use-answer.ts';

/** The policies of all processes: which refuse calls, and how much load their retries add. */
export function Policies() {
  const asked = useAnswer('GET /policies', {}, 2000);
  const policies = asked.answer?.items;
  return (
    <section class="view" aria-labelledby="policies-title">
      <header>
        <div>
          <h1 id="policies-title" tabIndex={-1}>
            {policies ? headline(policies) : 'Policies'}
          </h1>
          <p>Load is what is sent for each piece of work: 1.10 × means that retries add a tenth.</p>
        </div>
      </header>
      <Trouble answered={asked} />
      {policies?.length === 0 && (
        <div class="sheet">
          <Empty title="No policy has a name yet.">
            Policies are listed by name, from processes that have called joinFleet. Give yours one: policy(
            {"{ name: 'payment' }"}).
          </Empty>
        </div>
      )}
      {policies && policies.length > 0 && (
        <div class="sheet scroll">
          <table class="cards">
            <thead>
              <tr>
                <th>policy</th>
                <th>breakers</th>
                <th>mode</th>
                <th class="num">work</th>
                <th class="num">ok after retry</th>
                <th class="num">failed</th>
                <th class="num">load</th>
                <th class="num">processes</th>
              </tr>
            </thead>
            <tbody>
              {policies.map((policy) => (
                <PolicyRow key={policy.name} policy={policy} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function headline(policies: readonly PolicyState[]): string {
  const open = policies.filter((policy) => breakersWord(policy).state === 'refused');
  if (policies.length === 0) return 'No policy reports here.';
  if (open.length === 0) return 'No breaker is open.';
  if (open.length === 1) return `${open[0]!.name} refuses calls.`;
  return `${sentence(inWords(open.length))} policies refuse calls: ${open.map(({ name }) => name).join(', ')}.`;
}

function PolicyRow({ policy }: { readonly policy: PolicyState }) {
  const { name, counters, loadMultiplication, targets, processes, controls } = policy;
  const { state, says } = breakersWord(policy);
  const operations = Number(counters.operations ?? 0);
  const targetCount = new Set(targets.map(({ target }) => target)).size;
  return (
    <tr>
      <td class="whole">
        <a href={`/policies/${encodeURIComponent(name)}`}>
          <b>{name}</b>
        </a>
        <span class="two-line">
          {targetCount} {targetCount === 1 ? 'target' : 'targets'}
          {controls.length > 0 && ` · ${controls.map((control) => control.says).join(', ')}`}
        </span>
      </td>
      <td>
        <span class={`state is-${state}`}>
          <Glyph state={state} label="" />
          {says}
        </span>
      </td>
      <td data-is="mode">{modeWord(policy)}</td>
      <td class="num" data-is="work">
        {grouped(operations)}
      </td>
      <td class="num" data-is="ok after retry">
        {percent(successAfterRetry(policy))}
      </td>
      <td class="num" data-is="failed">
        {percent(operations > 0 ? Number(counters.failed ?? 0) / operations : 0)}
      </td>
      <td class="num" data-is="load">
        {loadMultiplication.toFixed(2)} ×
      </td>
      <td class="num" data-is="processes">
        {processes}
      </td>
    </tr>
  );
}

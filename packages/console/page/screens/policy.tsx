import type { AnswerOf } from '../../src/api/routes.ts';
import { grouped, percent, span } from '../format.ts';
import { ActButton } from '../parts/act-dialog.tsx';
import { ControlList } from '../parts/control-list.tsx';
import { Glyph, Tag } from '../parts/glyph.tsx';
import { Trouble } from '../parts/quiet.tsx';
import { BreakerStrip } from '../policies/breaker-strip.tsx';
import { DelayChart } from '../policies/delay-chart.tsx';
import { Explanation } from '../policies/explanation.tsx';
import { PolicyActDialog, policyActs } from '../policies/policy-act-dialog.tsx';
import {
  becauseWords,
  breakerLook,
  breakersWord,
  modeWord,
  type PolicyState,
  successAfterRetry,
  type Target,
} from '../policies/policy-state.ts';
import { useAnswer } from '../use-answer.ts';
import { useQuery } from '../use-query.ts';

type PolicyAnswer = AnswerOf<'GET /policies/:policy'>;

export function Policy({ policy: name = '' }: { readonly policy?: string }) {
  const asked = useAnswer('GET /policies/:policy', { path: { policy: name } }, 2000);
  const { query, go, replace } = useQuery();
  const { answer } = asked;
  const policy = answer?.policy;
  const act = policyActs.find((each) => each === query.act);
  return (
    <section class="view" aria-labelledby="policy-title">
      <header>
        <div>
          <p class="crumbs">
            <a href="/policies">Policies</a>
          </p>
          <h1 id="policy-title" tabIndex={-1}>
            {policy ? headline(policy) : name}
          </h1>
          <p>{policy && summary(policy)}</p>
        </div>
        <div class="acts">
          <a class="btn" href={`/simulator?policy=${encodeURIComponent(name)}`}>
            Try in the simulator
          </a>
          <ActButton onClick={() => go({ act: 'force', target: undefined })}>Force…</ActButton>
          <ActButton onClick={() => go({ act: 'retries', to: policy?.killSwitch ? 'on' : 'off' })}>
            {policy?.killSwitch ? 'Retries on…' : 'Retries off…'}
          </ActButton>
          <ActButton onClick={() => go({ act: 'mode' })}>Mode…</ActButton>
        </div>
      </header>
      <Trouble answered={asked} />
      {answer && policy && (
        <>
          <Figures policy={policy} />
          <div class="two">
            <div class="stack">
              {policy.targets.map((target) => (
                <TargetSheet key={`${target.process} ${target.target}`} target={target} now={answer.now} />
              ))}
              <Meaning answer={answer} />
            </div>
            <div class="stack">
              <div class="sheet">
                <header>
                  <h2>Controls in force</h2>
                </header>
                <div class="body">
                  <ControlList controls={policy.controls} again={asked.again} />
                </div>
              </div>
              <Counts policy={policy} />
            </div>
          </div>
          {act && (
            <PolicyActDialog
              act={act}
              policy={policy}
              target={query.target}
              to={query.to}
              again={asked.again}
              close={() => replace({ act: undefined, target: undefined, to: undefined })}
            />
          )}
        </>
      )}
    </section>
  );
}

function headline(policy: PolicyState): string {
  const { name, targets } = policy;
  const { state, says } = breakersWord(policy);
  const guarded = targets.filter(({ breaker }) => breaker !== undefined).length;
  if (state === 'refused') {
    const open = targets.filter(({ breaker }) => breaker === 'open').length;
    return open === guarded
      ? `${name} spares ${guarded === 1 ? 'its target' : `all ${guarded} targets`}.`
      : `${name} spares ${open} of ${guarded} targets.`;
  }
  if (state === 'retrying') return `${name} probes: ${says}.`;
  return policy.killSwitch
    ? `${name} does not retry: it was switched off.`
    : `${name} lets all calls through.`;
}

function summary(policy: PolicyState): string {
  const { enforcedShare, processes } = policy;
  const does = enforcedShare === 0 ? 'It only observes' : `Mode ${modeWord(policy)}`;
  return `${does}, in ${processes === 1 ? 'one process' : `${processes} processes`}.`;
}

function Figures({ policy }: { readonly policy: PolicyState }) {
  const { counters, loadMultiplication } = policy;
  const operations = Number(counters.operations ?? 0);
  const stops = Object.values((counters.stops as Record<string, number> | undefined) ?? {});
  const figures = [
    ['Work', grouped(operations), 'since its processes began'],
    ['Attempts', grouped(Number(counters.attempts ?? 0)), 'calls that were made'],
    ['Load', `${loadMultiplication.toFixed(2)} ×`, 'calls for each piece of work'],
    ['Success after retry', percent(successAfterRetry(policy)), 'of all work'],
    ['Failed', grouped(Number(counters.failed ?? 0)), 'pieces of work'],
    ['Stopped', grouped(stops.reduce((sum, each) => sum + each, 0)), 'not tried again, for a reason below'],
  ] as const;
  return (
    <div class="sheet">
      <ul class="figures">
        {figures.map(([label, value, note]) => (
          <li key={label}>
            <span class="label">{label}</span>
            <strong>{value}</strong>
            <span class="note">{note}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** One target of the policy in one process. */
function TargetSheet({ target, now }: { readonly target: Target; readonly now: number }) {
  const { go } = useQuery();
  const { breaker, breakerBecause, breakerForMs, admitsInMs, forced, window, tokens, tokensMax, strip } =
    target;
  const look = breaker === undefined ? undefined : breakerLook(breaker);
  const name = target.target ?? 'the only target';
  return (
    <div class="sheet">
      <header>
        <h2 class="cut">{name}</h2>
        {look && <Tag state={look.state}>{look.says}</Tag>}
        <span class="small">
          {forced
            ? `kept ${forced.state} by hand${forced.because ? `: “${forced.because}”` : ''}`
            : breakerBecause !== undefined &&
              breaker !== 'closed' &&
              `because ${becauseWords(breakerBecause)}`}
        </span>
        <span class="small right">
          {breaker === 'open' && typeof admitsInMs === 'number' && (
            <>
              probes again in <b>{span(admitsInMs)}</b>
            </>
          )}
        </span>
      </header>
      <div class="body stack tight">
        {look ? (
          <>
            <BreakerStrip strip={strip} now={now} />
            <ul class="keys small">
              <li>
                <Glyph state="ok" label="" />
                closed
              </li>
              <li>
                <Glyph state="retrying" label="" />
                half-open
              </li>
              <li>
                <Glyph state="refused" label="" />
                open
              </li>
            </ul>
          </>
        ) : (
          <p class="quiet small">It has no breaker: only its budget is kept here.</p>
        )}
        <dl class="facts">
          <dt>process</dt>
          <dd class="mono">{target.process}</dd>
          {window && (
            <>
              <dt>in the window</dt>
              <dd>
                {grouped(window.calls)} calls, {grouped(window.failures)} failed, {grouped(window.slow)} slow
              </dd>
            </>
          )}
          {tokens !== undefined && (
            <>
              <dt>budget</dt>
              <dd>{budgetWords(tokens, tokensMax)}</dd>
            </>
          )}
          <dt>in flight</dt>
          <dd>
            {target.inFlight}
            {target.queued ? `, ${target.queued} queued` : ''}
            {target.p50 !== undefined && ` · half within ${span(target.p50)}`}
            {target.p99 !== undefined && `, 99 % within ${span(target.p99)}`}
          </dd>
          {breakerForMs !== undefined && breaker !== undefined && (
            <>
              <dt>{look?.says} for</dt>
              <dd>{span(breakerForMs)}</dd>
            </>
          )}
        </dl>
        {look && (
          <div class="acts">
            {(forced ? ['auto'] : ['open', 'closed']).map((to) => (
              <ActButton
                key={to}
                isTiny
                onClick={() => go({ act: 'force', to, target: target.target ?? undefined })}
              >
                {to === 'auto' ? 'Let it decide…' : `Keep ${to}…`}
              </ActButton>
            ))}
          </div>
        )}
      </div>
    </div>
  );
}

function budgetWords(tokens: number, tokensMax: number | undefined): string {
  const left = `${tokens.toFixed(1)}${tokensMax !== undefined && tokensMax >= tokens ? ` of ${tokensMax.toFixed(1)}` : ''} retries left`;
  return tokens < 1 ? `${left}: it waits for successes to pay for the next` : left;
}

/**
 * Shows what the policy does. Only policies of this process have a document, because reports of other
 * processes do not contain it.
 */
function Meaning({
  answer: { policy, explanation, delays, lint, document },
}: {
  readonly answer: PolicyAnswer;
}) {
  if (explanation === undefined)
    return (
      <div class="sheet">
        <header>
          <h2>What it does</h2>
        </header>
        <div class="body">
          <p class="quiet small">
            Its document is not known here: {policy.name} lives in another process, and reports have states
            only. <code>holdfast policies explain</code> says it from the file.
          </p>
        </div>
      </div>
    );
  return (
    <>
      {delays && delays.length > 0 && (
        <div class="sheet">
          <header>
            <h2>When attempts begin</h2>
            <span class="small">from least to most by chance, if every attempt fails at once</span>
          </header>
          <div class="body">
            <DelayChart delays={delays} />
          </div>
        </div>
      )}
      <Explanation text={explanation} document={document} />
      {lint && lint.length > 0 && (
        <div class="sheet">
          <header>
            <h2>What could be better</h2>
          </header>
          <div class="body">
            <ul class="checks">
              {lint.map(({ level, says }) => (
                <li key={says}>
                  <Glyph state={level === 'error' ? 'parked' : 'retrying'} label={level} />
                  <span>{says}</span>
                </li>
              ))}
            </ul>
          </div>
        </div>
      )}
    </>
  );
}

/**
 * `stops` counts why operations were not retried. `would` counts what the policy would have done where it
 * only observes.
 */
function Counts({ policy: { counters } }: { readonly policy: PolicyState }) {
  const stops = Object.entries((counters.stops as Record<string, number> | undefined) ?? {});
  const would = Object.entries((counters.would as Record<string, number> | undefined) ?? {});
  return (
    <div class="sheet">
      <header>
        <h2>Why it stopped</h2>
      </header>
      <div class="body">
        {stops.length === 0 && <p class="quiet small">It has given nothing up yet.</p>}
        <dl class="facts">
          {stops.map(([reason, count]) => (
            <Row key={reason} name={reason} count={count} />
          ))}
        </dl>
        {would.length > 0 && (
          <>
            <h3>Would have</h3>
            <dl class="facts">
              {would.map(([what, count]) => (
                <Row key={what} name={what} count={count} />
              ))}
            </dl>
          </>
        )}
      </div>
    </div>
  );
}

function Row({ name, count }: { readonly name: string; readonly count: number }) {
  return (
    <>
      <dt>
        <code>{name}</code>
      </dt>
      <dd class="num">{grouped(count)}</dd>
    </>
  );
}

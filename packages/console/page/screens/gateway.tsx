import { useLocation } from 'preact-iso';
import { grouped, inWords, percent, sentence, span } from '../format.ts';
import { GatewayActDialog, gatewayActs } from '../gateway/gateway-act-dialog.tsx';
import {
  type GatewayState,
  gatewayState,
  type Instance,
  instanceWord,
  type RequestStory,
  type Upstream,
  upstreamsOf,
} from '../gateway/gateway-state.ts';
import { ActButton } from '../parts/act-dialog.tsx';
import { Ago } from '../parts/ago.tsx';
import { Glyph, Tag } from '../parts/glyph.tsx';
import { PartMissing } from '../parts/part-missing.tsx';
import { Empty, Trouble } from '../parts/quiet.tsx';
import { session } from '../session.ts';
import { useAnswer } from '../use-answer.ts';
import { useQuery } from '../use-query.ts';

export function Gateway() {
  return session.value?.parts.gateway === false ? (
    <PartMissing title="Gateway" part="a gateway" code="gateway: { ask }">
      Upstreams with their instances would be here, ejections, the file in force, and the story of each
      request that was retried.
    </PartMissing>
  ) : (
    <Known />
  );
}

function Known() {
  const asked = useAnswer('GET /gateway', {}, 2000);
  const { query, go, replace } = useQuery();
  const { answer } = asked;
  const state = answer && gatewayState(answer);
  const upstreams = state ? upstreamsOf(state) : [];
  const act = gatewayActs.find((each) => each === query.act);
  return (
    <section class="view" aria-labelledby="gateway-title">
      <header>
        <div>
          <h1 id="gateway-title" tabIndex={-1}>
            {state ? headline(state, upstreams) : 'Gateway'}
          </h1>
          <p>{state && summary(state)}</p>
        </div>
      </header>
      <Trouble answered={asked} />
      {state && (
        <>
          <div class="sheet scroll">
            <table class="cards">
              <thead>
                <tr>
                  <th>instance</th>
                  <th>state</th>
                  <th>last check</th>
                  <th class="num">calls</th>
                  <th class="num">failing</th>
                  <th class="num">p50</th>
                  <th class="num">p99</th>
                  <th class="num">in flight</th>
                  <th>
                    <span class="unseen">acts</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {upstreams.map((upstream) => (
                  <UpstreamRows
                    key={upstream.name}
                    upstream={upstream}
                    open={(which, instance) => go({ act: which, upstream: upstream.name, instance })}
                  />
                ))}
              </tbody>
            </table>
          </div>
          <div class="two even">
            <div class="stack">
              <Why />
              <Routes state={state} />
            </div>
            <FileInForce state={state} config={answer.config} reload={() => go({ act: 'reload' })} />
          </div>
          <Stories />
        </>
      )}
      {act && state && (
        <GatewayActDialog
          act={act}
          upstream={upstreams.find(({ name }) => name === query.upstream)}
          instance={query.instance ?? ''}
          again={asked.again}
          close={() => replace({ act: undefined, upstream: undefined, instance: undefined })}
        />
      )}
    </section>
  );
}

function headline({ isDraining }: GatewayState, upstreams: readonly Upstream[]): string {
  const all = upstreams.flatMap(({ instances }) => instances);
  const bad = all.filter((instance) => instanceWord(instance).state !== 'ok');
  if (isDraining) return 'The gateway is draining: it takes nothing new.';
  if (bad.length === 0) return `All ${inWords(all.length)} instances are in use.`;
  if (bad.length === all.length) return 'No instance is in use.';
  if (bad.length === 1) return `One of ${inWords(all.length)} instances: ${instanceWord(bad[0]!).says}.`;
  return `${sentence(inWords(bad.length))} of ${inWords(all.length)} instances are not in use.`;
}

function summary({ workers }: GatewayState): string {
  const routes = workers.flatMap((worker) => worker.routes);
  const sum = (of: (route: (typeof routes)[number]) => number) =>
    routes.reduce((total, each) => total + of(each), 0);
  const requests = sum(({ requests: count }) => count);
  const failed = sum(({ statuses }) => statuses['5xx'] ?? 0);
  const share = requests > 0 ? failed / requests : 0;
  return `${grouped(requests)} requests since it began, ${percent(share, 2)} answered with 5xx; ${grouped(sum(({ retries }) => retries))} retries, ${grouped(sum(({ refused }) => refused))} refused.`;
}

function UpstreamRows({
  upstream,
  open,
}: {
  readonly upstream: Upstream;
  readonly open: (act: string, instance: string) => void;
}) {
  const { name, instances, insecure, policies } = upstream;
  const used = instances.filter((each) => instanceWord(each).state === 'ok').length;
  return (
    <>
      <tr class="head">
        <td colSpan={9}>
          <b>{name}</b>&ensp;
          <Tag state={used === instances.length ? 'ok' : used === 0 ? 'parked' : 'retrying'}>
            {used} of {instances.length} in use
          </Tag>
          &ensp;
          {policies.map((policy) => (
            <a key={policy} href={`/policies/${encodeURIComponent(policy)}`}>
              {policy}
            </a>
          ))}
          {insecure && <span class="is-parked"> · certificates are not checked</span>}
        </td>
      </tr>
      {instances.map((instance) => (
        <InstanceRow key={instance.name} instance={instance} open={(act) => open(act, instance.name)} />
      ))}
    </>
  );
}

function InstanceRow({
  instance,
  open,
}: {
  readonly instance: Instance;
  readonly open: (act: string) => void;
}) {
  const { name, isDraining, calls, failures, p50, p99, inFlight, lastCheckError, breaker, forced } = instance;
  const { state, says } = instanceWord(instance);
  return (
    <tr>
      <td class="whole">
        <span class="mono">{name}</span>
      </td>
      <td>
        <span class={`state is-${state}`}>
          <Glyph state={state} label="" />
          {says}
        </span>
      </td>
      <td data-is="last check" class="soft">
        {lastCheckError ?? 'good'}
      </td>
      <td class="num" data-is="calls">
        {grouped(calls)}
      </td>
      <td class="num" data-is="failing">
        {percent(calls > 0 ? failures / calls : 0)}
      </td>
      <td class="num nowrap" data-is="p50">
        {p50 === undefined ? '–' : span(p50)}
      </td>
      <td class="num nowrap" data-is="p99">
        {p99 === undefined ? '–' : span(p99)}
      </td>
      <td class="num" data-is="in flight">
        {inFlight}
      </td>
      <td class="whole">
        <span class="acts end">
          <ActButton isTiny onClick={() => open(isDraining ? 'resume' : 'drain')}>
            {isDraining ? 'Resume…' : 'Drain…'}
          </ActButton>
          {breaker !== null && (
            <ActButton isTiny onClick={() => open('force')}>
              {forced ? 'Let it decide…' : 'Force…'}
            </ActButton>
          )}
        </span>
      </td>
    </tr>
  );
}

/** A form for the id of a request. The response of the gateway contained that id. */
function Why() {
  return (
    <div class="sheet">
      <header>
        <h2>Why was this request retried?</h2>
      </header>
      <div class="body">
        <RequestForm />
      </div>
    </div>
  );
}

function RequestForm() {
  const { route } = useLocation();
  return (
    <form
      class="chips"
      onSubmit={(event) => {
        event.preventDefault();
        const id = String(new FormData(event.currentTarget).get('id') ?? '').trim();
        if (id !== '') route(`/gateway/requests/${encodeURIComponent(id)}`);
      }}
    >
      <label class="field grows">
        <span>Its x-request-id</span>
        <input class="input mono" name="id" required />
      </label>
      <button type="submit" class="btn">
        Tell
      </button>
    </form>
  );
}

function Routes({ state: { workers } }: { readonly state: GatewayState }) {
  const routes = workers.flatMap((worker) => worker.routes);
  const names = [...new Set(routes.map(({ name }) => name))];
  const sum = (name: string, of: (route: (typeof routes)[number]) => number) =>
    routes.filter((each) => each.name === name).reduce((total, each) => total + of(each), 0);
  return (
    <div class="sheet scroll">
      <header>
        <h2>Routes</h2>
      </header>
      <table class="cards">
        <thead>
          <tr>
            <th>route</th>
            <th class="num">requests</th>
            <th class="num">5xx</th>
            <th class="num">retries</th>
            <th class="num">refused</th>
            <th class="num">fallbacks</th>
          </tr>
        </thead>
        <tbody>
          {names.map((name) => (
            <tr key={name}>
              <td class="whole">
                <b>{name}</b>
                <span class="two-line">to {routes.find((each) => each.name === name)?.upstream}</span>
              </td>
              {(
                [
                  ['requests', ({ requests }) => requests],
                  ['5xx', ({ statuses }) => statuses['5xx'] ?? 0],
                  ['retries', ({ retries }) => retries],
                  ['refused', ({ refused }) => refused],
                  ['fallbacks', ({ fallbacks }) => fallbacks],
                ] as const satisfies readonly (readonly [
                  string,
                  (route: (typeof routes)[number]) => number,
                ])[]
              ).map(([label, of]) => (
                <td key={label} class="num" data-is={label}>
                  {grouped(sum(name, of))}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function FileInForce({
  state: { lastReload, workers },
  config,
  reload,
}: {
  readonly state: GatewayState;
  readonly config: unknown;
  readonly reload: () => void;
}) {
  const files = (config as { readonly files?: readonly string[] }).files ?? [];
  const since = lastReload?.ok ? lastReload.at : Math.min(...workers.map(({ startedAt }) => startedAt));
  return (
    <div class="sheet">
      <header>
        <h2>The file in force</h2>
        <span class="acts right">
          <ActButton isTiny onClick={reload}>
            Reload…
          </ActButton>
        </span>
      </header>
      <div class="body stack tight">
        <p>
          <code>{files.join(', ')}</code>, in force since <Ago at={since} />.
        </p>
        {lastReload && !lastReload.ok && (
          <>
            <p>
              <span class="state is-parked">
                <Glyph state="parked" label="" />
                refused <Ago at={lastReload.at} />
              </span>{' '}
              and changed nothing:
            </p>
            <code class="shell plain">
              {lastReload.problems && lastReload.problems.length > 0
                ? lastReload.problems
                    .map(
                      ({ file, line, column, path, message }) =>
                        `${file}:${line}:${column}: ${path}: ${message}`,
                    )
                    .join('\n')
                : lastReload.error}
            </code>
          </>
        )}
        <details>
          <summary>What it says, without secrets</summary>
          <pre class="words">{JSON.stringify(config, null, 2)}</pre>
        </details>
      </div>
    </div>
  );
}

/** The latest requests that failed or needed more than one attempt. */
function Stories() {
  const asked = useAnswer('GET /gateway/requests', {}, 3000);
  const all = (asked.answer?.stories ?? []) as unknown as readonly RequestStory[];
  const stories = all.filter(({ attempts, status }) => attempts !== 1 || status >= 400);
  return (
    <div class="sheet scroll">
      <header>
        <h2>Latest requests that were retried or failed</h2>
        <span class="small">of the last {all.length} on record</span>
      </header>
      <Trouble answered={asked} />
      {asked.answer && stories.length === 0 && (
        <Empty title="None.">Every request on record was answered by its first attempt.</Empty>
      )}
      {stories.length > 0 && (
        <table class="cards">
          <thead>
            <tr>
              <th>request</th>
              <th>when</th>
              <th class="num">status</th>
              <th class="num">attempts</th>
              <th class="num">took</th>
              <th>stop</th>
            </tr>
          </thead>
          <tbody>
            {stories.slice(0, 20).map(({ id, method, path, time, status, attempts, ms, stop }) => (
              <tr key={id}>
                <td class="whole">
                  <a href={`/gateway/requests/${encodeURIComponent(id)}`}>
                    <b class="mono">{id}</b>
                  </a>
                  <span class="two-line">
                    {method} {path}
                  </span>
                </td>
                <td class="nowrap" data-is="when">
                  <Ago at={Date.parse(time)} />
                </td>
                <td class="num" data-is="status">
                  <span class={`state is-${status < 500 ? 'ok' : 'parked'}`}>
                    <Glyph state={status < 500 ? 'ok' : 'parked'} label="" />
                    {status}
                  </span>
                </td>
                <td class="num" data-is="attempts">
                  {attempts}
                </td>
                <td class="num nowrap" data-is="took">
                  {span(ms)}
                </td>
                <td data-is="stop">{stop && <code>{stop}</code>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}

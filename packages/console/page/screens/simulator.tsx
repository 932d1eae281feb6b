import { useEffect, useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import { ask } from '../api.ts';
import { percent } from '../format.ts';
import { ActButton } from '../parts/act-dialog.tsx';
import { Ago } from '../parts/ago.tsx';
import { Glyph, type State } from '../parts/glyph.tsx';
import { PartMissing } from '../parts/part-missing.tsx';
import { Trouble } from '../parts/quiet.tsx';
import { session } from '../session.ts';
import { RunResults, type SimulatorRun } from '../simulator/run-results.tsx';
import { tell } from '../toast.tsx';
import { useAnswer } from '../use-answer.ts';
import { useQuery } from '../use-query.ts';

const example = `policies:
  proposal:
    patience: 3s
    attempts: 4
`;

/** Tests a policy in a simulated outage (a storm). It runs the production code in virtual time. */
export function Simulator({ run }: { readonly run?: string }) {
  return session.value?.parts.simulator === false ? (
    <PartMissing title="Simulator" part="a simulator" code="simulator: stormRunner()">
      Policies could be tried here in storms, side by side, before they are made.
    </PartMissing>
  ) : (
    <Known runId={run} />
  );
}

function Known({ runId }: { readonly runId: string | undefined }) {
  const asked = useAnswer('GET /simulator', {}, 3000);
  const one = useAnswer(
    'GET /simulator/runs/:id',
    runId === undefined ? undefined : { path: { id: runId } },
    1000,
  );
  const run = runId === undefined ? undefined : one.answer?.run;
  return (
    <section class="view" aria-labelledby="simulator-title">
      <header>
        <div>
          {runId !== undefined && (
            <p class="crumbs">
              <a href="/simulator">Simulator</a>
            </p>
          )}
          <h1 id="simulator-title" tabIndex={-1}>
            {run ? headline(run) : 'Try a policy before it is made.'}
          </h1>
          <p>
            {run
              ? `${run.scenario}: ${asked.answer?.scenarios.find(({ name }) => name === run.scenario)?.summary ?? ''}`
              : 'Virtual time, the policy code that runs in production, the same seeds for every policy.'}
          </p>
        </div>
      </header>
      <Trouble answered={runId === undefined ? asked : one} />
      {run && <Progress run={run} again={one.again} />}
      {run?.rows && <RunResults run={run} rows={run.rows} />}
      <div class="two">
        {asked.answer && (
          <Proposal key={run?.id ?? ''} scenarios={asked.answer.scenarios} run={run} again={asked.again} />
        )}
        {asked.answer && <Runs runs={asked.answer.runs} shown={runId} />}
      </div>
    </section>
  );
}

function headline({ rows, state, error, scenario, progress }: SimulatorRun): string {
  if (state === 'running') return `${scenario} runs: ${percent(progress, 0)}.`;
  if (state === 'cancelled') return `${scenario} was cancelled.`;
  if (state === 'failed' || !rows?.[0]) return `${scenario} could not run: ${error ?? 'no result'}`;
  const [first] = rows;
  const { recovery } = first.figures;
  const back = recovery === undefined ? 'never comes back' : `is back after ${recovery.toFixed(0)} s`;
  return `In this storm, ${first.name} ${back}.`;
}

function Progress({ run, again }: { readonly run: SimulatorRun; readonly again: () => void }) {
  if (run.state !== 'running') return null;
  return (
    <div class="sheet">
      <div class="body stack tight padded">
        <progress class="wide-bar" value={run.progress} aria-label={`${percent(run.progress, 0)} done`} />
        <div class="acts">
          <ActButton
            isTiny
            onClick={() => {
              ask('DELETE /simulator/runs/:id', { path: { id: run.id } }).then(again, (error: Error) =>
                tell(error.message),
              );
            }}
          >
            Cancel the run
          </ActButton>
        </div>
      </div>
    </div>
  );
}

interface ProposalProps {
  readonly scenarios: readonly { readonly name: string; readonly summary: string }[];
  readonly run: SimulatorRun | undefined;
  readonly again: () => void;
}

/**
 * The form for a policy to test. With `?policy=name` in the URL, it starts with the document of that live
 * policy.
 */
function Proposal({ scenarios, run, again }: ProposalProps) {
  const { route } = useLocation();
  const { query, replace } = useQuery();
  const live = useAnswer(
    'GET /policies/:policy',
    query.policy === undefined ? undefined : { path: { policy: query.policy } },
  );
  const [text, setText] = useState(run?.policy ?? example);
  const [error, setError] = useState('');
  const document = live.answer?.document;
  useEffect(() => {
    if (document !== undefined && query.policy !== undefined) setText(documentOf(query.policy, document));
  }, [document === undefined]);
  const scenario =
    query.storm ??
    run?.scenario ??
    (scenarios.some(({ name }) => name === 's03') ? 's03' : scenarios[0]?.name) ??
    '';
  const isUnknown = live.answer !== undefined && document === undefined;
  return (
    <div class="sheet">
      <header>
        <h2>{run ? 'Change and run again' : 'A storm, and a policy'}</h2>
      </header>
      <div class="body stack tight">
        <Trouble answered={live} />
        {isUnknown && (
          <p class="is-retrying small">
            The document of {query.policy} is not known here: it lives in another process. Paste it below.
          </p>
        )}
        <label class="field">
          <span>Storm</span>
          <select value={scenario} onChange={({ currentTarget }) => replace({ storm: currentTarget.value })}>
            {scenarios.map(({ name, summary }) => (
              <option key={name} value={name}>
                {name}: {summary}
              </option>
            ))}
          </select>
        </label>
        <label class="field">
          <span>Policies, as YAML or JSON</span>
          <textarea
            class="mono"
            rows={12}
            spellcheck={false}
            value={text}
            onInput={({ currentTarget }) => setText(currentTarget.value)}
          />
        </label>
        {error !== '' && (
          <p class="is-parked" role="alert">
            {error}
          </p>
        )}
        <div class="acts">
          <ActButton
            isFirst
            onClick={() => {
              setError('');
              ask('POST /simulator/runs', { body: { scenario, policy: text } }).then(
                (answer) => {
                  again();
                  route(`/simulator/${encodeURIComponent(answer.run.id)}`);
                },
                (failure: Error) => setError(failure.message),
              );
            }}
          >
            Run
          </ActButton>
        </div>
      </div>
    </div>
  );
}

function documentOf(name: string, spec: unknown): string {
  const { name: _, ...rest } = spec as Record<string, unknown>;
  return JSON.stringify({ policies: { [`${name} (live)`]: rest, proposal: rest } }, null, 2);
}

const looks: Readonly<Record<SimulatorRun['state'], State>> = {
  running: 'retrying',
  done: 'ok',
  failed: 'parked',
  cancelled: 'over',
};

function Runs({
  runs,
  shown,
}: {
  readonly runs: readonly SimulatorRun[];
  readonly shown: string | undefined;
}) {
  return (
    <div class="sheet">
      <header>
        <h2>Latest runs</h2>
      </header>
      {runs.length === 0 && (
        <div class="body">
          <p class="quiet small">None since this console began. The last 20 are kept.</p>
        </div>
      )}
      <ul class="rows">
        {runs.map(({ id, scenario, state, startedAt, rows }) => (
          <li key={id}>
            <a href={`/simulator/${encodeURIComponent(id)}`} aria-current={id === shown ? 'true' : undefined}>
              <Glyph state={looks[state]} label={state} />
              <span>
                {scenario}: {rows?.map(({ name }) => name).join(', ') ?? state}
                <small>
                  <Ago at={startedAt} />
                </small>
              </span>
            </a>
          </li>
        ))}
      </ul>
    </div>
  );
}

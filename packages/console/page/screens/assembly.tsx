import type { AnswerOf } from '../../src/api/routes.ts';
import { AssemblyActDialog, assemblyActs } from '../assemblies/assembly-act-dialog.tsx';
import { type AssemblyStep, assemblyLooks, stepLook } from '../assemblies/assembly-look.ts';
import { StepTimeline } from '../assemblies/step-timeline.tsx';
import { many, span } from '../format.ts';
import { storeNow } from '../live.ts';
import { ActButton } from '../parts/act-dialog.tsx';
import { Ago } from '../parts/ago.tsx';
import { Glyph, Tag } from '../parts/glyph.tsx';
import { Trouble } from '../parts/quiet.tsx';
import { useAnswer } from '../use-answer.ts';
import { useQuery } from '../use-query.ts';

type AssemblyAnswer = AnswerOf<'GET /assemblies/:id'>;

/** One assembly (work of several steps): its steps over time, the time left, and what the customer sees. */
export function Assembly({ id = '' }: { readonly id?: string }) {
  const asked = useAnswer('GET /assemblies/:id', { path: { id } }, 2000);
  const { query, go, replace } = useQuery();
  const { answer } = asked;
  const act = assemblyActs.find((each) => each === query.act);
  return (
    <section class="view" aria-labelledby="assembly-title">
      <header>
        <div>
          <p class="crumbs">
            <a href="/assemblies">Assemblies</a>
            {answer && (
              <>
                {' / '}
                <a href={`/assemblies?name=${encodeURIComponent(answer.assembly.name)}`}>
                  {answer.assembly.name}
                </a>
              </>
            )}
          </p>
          <h1 id="assembly-title" tabIndex={-1}>
            {answer ? headline(answer) : id}
          </h1>
          <p>{answer?.assembly.says}</p>
        </div>
        <div class="acts">
          <ActButton isFirst={answer?.assembly.state === 'parked'} onClick={() => go({ act: 'resume' })}>
            Resume…
          </ActButton>
          <ActButton onClick={() => go({ act: 'edit', step: undefined })}>Edit the input…</ActButton>
          <ActButton onClick={() => go({ act: 'cancel' })}>Cancel…</ActButton>
        </div>
      </header>
      <Trouble answered={asked} />
      {answer && (
        <div class="two">
          <div class="stack">
            <div class="sheet">
              <header>
                <h2 class="mono">{id}</h2>
                <Tag state={assemblyLooks[answer.assembly.state]}>{answer.assembly.state}</Tag>
                <span class="small">accepted</span> <Ago at={answer.assembly.acceptedAt} />
              </header>
              <div class="body">
                {answer.steps.length === 0 ? (
                  <p class="quiet small">No step is on record yet.</p>
                ) : (
                  <StepTimeline
                    steps={answer.steps}
                    from={answer.assembly.acceptedAt}
                    endedAt={restsAt(answer)}
                    now={answer.now}
                  />
                )}
              </div>
            </div>
            {answer.steps.map((step) => (
              <StepSheet key={step.path} step={step} edit={() => go({ act: 'edit', step: step.path })} />
            ))}
          </div>
          <Sides answer={answer} />
        </div>
      )}
      {act && answer && (
        <AssemblyActDialog
          act={act}
          id={id}
          input={answer.input}
          steps={answer.steps}
          step={query.step}
          again={asked.again}
          close={() => replace({ act: undefined, step: undefined })}
        />
      )}
    </section>
  );
}

/** When the assembly ended, or was parked (set aside for a person); `undefined`: it still runs. */
function restsAt({ assembly, steps }: AssemblyAnswer): number | undefined {
  return assembly.state === 'parked' ? Math.max(...steps.map(({ at }) => at)) : assembly.endedAt;
}

function headline({ assembly, steps }: AssemblyAnswer): string {
  const { id, state, isStopping } = assembly;
  const step = steps.find((each) => each.state !== 'done')?.path;
  if (isStopping) return `${id} is stopping.`;
  if (state === 'parked') return `${id} needs you${step ? `: ${step} was given up` : ''}.`;
  if (state === 'done') return `${id} is done.`;
  if (state === 'stopped') return `${id} was stopped.`;
  return step ? `${id} is at ${step}.` : `${id} is ${state}.`;
}

function StepSheet({ step, edit }: { readonly step: AssemblyStep; readonly edit: () => void }) {
  const { path, kind, attempts, story = [], result, error, because, dueAt, state } = step;
  const look = stepLook(step);
  return (
    <div class="sheet">
      <header>
        <h2>{path}</h2>
        <Tag state={look}>{state}</Tag>
        <span class="small">
          {kind}
          {attempts > 0 && `, ${many(attempts, 'attempt')}`}
          {because !== undefined && ` · ${because}`}
        </span>
        <span class="small">{dueAt !== undefined && state !== 'done' && <Ago at={dueAt} future />}</span>
        <span class="acts right">
          <ActButton isTiny onClick={edit}>
            Edit the result…
          </ActButton>
        </span>
      </header>
      {(story.length > 0 || result !== undefined || error !== undefined) && (
        <div class="body stack tight">
          {story.length > 0 && (
            <ol class="story">
              {story.map((attempt) => (
                <li key={attempt.attempt}>
                  <time dateTime={new Date(attempt.at).toISOString()}>
                    {new Date(attempt.at).toLocaleTimeString()}
                  </time>
                  <Glyph state={attempt.verdict === 'park' ? 'parked' : 'retrying'} label="" />
                  <span>
                    Attempt {attempt.attempt}: {attempt.errorMessage} after {span(attempt.tookMs)},{' '}
                    <b>{attempt.class}</b>.{' '}
                    {attempt.delayMs === undefined
                      ? `${attempt.verdict}: ${attempt.because}.`
                      : `Again after ${span(attempt.delayMs)}.`}
                  </span>
                </li>
              ))}
            </ol>
          )}
          {error !== undefined && story.length === 0 && <p class="is-parked small">{error}</p>}
          {result !== undefined && <pre class="words">{result}</pre>}
        </div>
      )}
    </div>
  );
}

function Sides({ answer }: { readonly answer: AssemblyAnswer }) {
  const { assembly, customer, input, result, signals, acts } = answer;
  const left = assembly.expiresAt === undefined ? undefined : assembly.expiresAt - storeNow();
  return (
    <div class="stack">
      <div class="sheet">
        <header>
          <h2>What the customer sees</h2>
        </header>
        <div class="body">
          <p>“{customer}”</p>
        </div>
        {left !== undefined && assembly.endedAt === undefined && (
          <footer>
            <span>
              {left > 0
                ? `Patience: ${span(left)} of ${span(assembly.expiresAt! - assembly.acceptedAt)} are left.`
                : 'Its patience has ended.'}
            </span>
          </footer>
        )}
      </div>
      <Data title="Input" text={input} />
      {result !== undefined && <Data title="Result" text={result} />}
      {signals.length > 0 && (
        <div class="sheet">
          <header>
            <h2>Signals</h2>
          </header>
          <div class="body">
            <ul class="checks">
              {signals.map(({ number, name, at }) => (
                <li key={number}>
                  <Glyph state="ok" label="" />
                  <span>
                    {name} <small>{<Ago at={at} />}</small>
                  </span>
                </li>
              ))}
            </ul>
          </div>
        </div>
      )}
      <div class="sheet">
        <header>
          <h2>What people did</h2>
        </header>
        <div class="body">
          {acts.length === 0 && <p class="quiet small">Nobody has touched it.</p>}
          <ul class="checks">
            {acts.map(({ who, why, at, what }) => (
              <li key={at}>
                <Glyph state="over" label="" />
                <span>
                  <b>{what}</b>
                  <small>
                    {who}, <Ago at={at} />: “{why}”
                  </small>
                </span>
              </li>
            ))}
          </ul>
        </div>
      </div>
    </div>
  );
}

function Data({ title, text }: { readonly title: string; readonly text: string }) {
  return (
    <div class="sheet">
      <header>
        <h2>{title}</h2>
      </header>
      <div class="body">
        <pre class="words">{pretty(text)}</pre>
      </div>
    </div>
  );
}

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    // The text is not JSON, so it is shown unchanged.
    return text;
  }
}

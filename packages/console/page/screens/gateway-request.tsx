import { ApiError } from '../api.ts';
import { many, span } from '../format.ts';
import type { RequestStory } from '../gateway/gateway-state.ts';
import { CommandLine } from '../parts/act-dialog.tsx';
import { Glyph } from '../parts/glyph.tsx';
import { Empty, Trouble } from '../parts/quiet.tsx';
import { shellWord } from '../shell-word.ts';
import { useAnswer } from '../use-answer.ts';

/** One gateway request: each attempt, its result, and the decision that followed. */
export function GatewayRequest({ id = '' }: { readonly id?: string }) {
  const asked = useAnswer('GET /gateway/requests/:id', { path: { id } });
  const story = asked.answer as unknown as RequestStory | undefined;
  const isUnknown = asked.error instanceof ApiError && asked.error.kind === 'unknown';
  return (
    <section class="view" aria-labelledby="request-title">
      <header>
        <div>
          <p class="crumbs">
            <a href="/gateway">Gateway</a>
          </p>
          <h1 id="request-title" tabIndex={-1}>
            {story ? headline(story) : `Request ${id}`}
          </h1>
          <p>{story && `${story.method} ${story.path}, from ${story.client}`}</p>
        </div>
      </header>
      {isUnknown ? (
        <div class="sheet">
          <Empty title={`No worker has a story of ${id}.`}>
            Only requests that were retried or failed have one, and the oldest are forgotten.
          </Empty>
        </div>
      ) : (
        <Trouble answered={asked} />
      )}
      {story && (
        <div class="two">
          <div class="sheet">
            <header>
              <h2>Its story</h2>
              <span class="small">times from its beginning</span>
            </header>
            <div class="body">
              <ol class="story">
                <li>
                  <time dateTime={story.time}>{new Date(story.time).toLocaleTimeString()}</time>
                  <Glyph state="over" label="" />
                  <span>
                    {story.method} {story.path}
                  </span>
                </li>
                {story.log.map((entry) => (
                  <li key={entry.attempt}>
                    <time>{span(entry.endedAtMs)}</time>
                    <Glyph state={entry.verdict === 'retry' ? 'retrying' : 'parked'} label="" />
                    <span>
                      <span class="mono">{entry.instance ?? 'no instance'}</span>: {entry.outcome},{' '}
                      <b>{entry.class}</b>.{' '}
                      {entry.verdict === 'retry'
                        ? `Tried again after ${span(entry.delayMs ?? 0)}, because it was ${entry.because ?? entry.class}.`
                        : `Not tried again: ${entry.because ?? entry.verdict}.`}
                    </span>
                  </li>
                ))}
                <li>
                  <time>{span(story.ms)}</time>
                  <Glyph state={story.status < 500 ? 'ok' : 'parked'} label="" />
                  <span>
                    {story.instance && <span class="mono">{story.instance}: </span>}
                    <b>{story.status}</b> to the client after {many(story.attempts, 'attempt')}
                    {story.stop && (
                      <>
                        , stopped by <code>{story.stop}</code>
                      </>
                    )}
                    {story.fallback && `, answered by the fallback ${story.fallback}`}.
                  </span>
                </li>
              </ol>
            </div>
          </div>
          <div class="sheet">
            <header>
              <h2>In words</h2>
            </header>
            <div class="body stack tight">
              <pre class="words">{story.says}</pre>
              <dl class="facts">
                <dt>route</dt>
                <dd>{story.route ?? 'none'}</dd>
                <dt>upstream</dt>
                <dd>{story.upstream ?? 'none'}</dd>
                <dt>host</dt>
                <dd>{story.host}</dd>
              </dl>
              <CommandLine command={`holdfast gateway request ${shellWord(id)}`} />
            </div>
          </div>
        </div>
      )}
    </section>
  );
}

function headline({ status, attempts, stop }: RequestStory): string {
  if (attempts === 0) return `Refused with ${status} before any attempt${stop ? `: ${stop}` : ''}.`;
  if (status < 500)
    return attempts === 1 ? `Answered ${status} at once.` : `Answered ${status} by attempt ${attempts}.`;
  return `Failed with ${status} after ${many(attempts, 'attempt')}.`;
}

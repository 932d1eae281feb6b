import { useLocation } from 'preact-iso';
import { bytes } from '../format.ts';
import { ActButton } from '../parts/act-dialog.tsx';
import { DiffView } from './diff-view.tsx';
import { textsOf } from './event-draft.ts';
import { pretty } from './json-text.ts';
import { withWords } from './lot-url.ts';
import type { ShownEvent } from './story.tsx';

const mask = '[redacted]';

export function EventContent({
  event,
  uncover,
}: {
  readonly event: ShownEvent;
  readonly uncover: () => void;
}) {
  const { url } = useLocation();
  const { payload, headers, edits, original } = event;
  const shown = new URL(url, location.origin).searchParams.get('tab') ?? 'payload';
  const names = Object.entries(headers);
  const isCovered =
    event.covered.length > 0 && (payload.text.includes(mask) || Object.values(headers).includes(mask));
  const tabs: readonly (readonly [name: string, says: string])[] = [
    ['payload', 'Payload'],
    ['headers', `Headers ${names.length}`],
    ['error', 'Error and stack'],
    ...(original ? ([['edits', `Edits ${edits.length}`]] as const) : []),
  ];
  return (
    <div class="sheet">
      <header>
        <h2>Content</h2>
        <span class="small">
          {bytes(payload.bytes)}
          {payload.isCut && ', only the beginning is shown'}
          {payload.encoding === 'base64' && ', bytes shown as base64'}
          {' · '}
          <a href={`/api/v1/parked/${encodeURIComponent(event.id)}/payload`} download>
            download
          </a>
        </span>
        <nav class="segments right" aria-label="What is shown">
          {tabs.map(([name, says]) => (
            <a
              key={name}
              class="btn tiny"
              aria-current={shown === name ? 'true' : undefined}
              href={withWords(url, { tab: name === 'payload' ? undefined : name })}
            >
              {says}
            </a>
          ))}
        </nav>
      </header>
      {isCovered && (
        <p class="news">
          Covered: {event.covered.join(', ')} ·{' '}
          <ActButton isTiny onClick={uncover}>
            Uncover…
          </ActButton>
        </p>
      )}
      {shown === 'payload' && (
        <Code text={payload.encoding === 'utf8' ? pretty(payload.text) : payload.text} />
      )}
      {shown === 'headers' && <HeaderTable headers={names} />}
      {shown === 'error' && <ErrorText event={event} />}
      {shown === 'edits' && original && (
        <>
          <DiffView
            before={pretty(original.payload.text)}
            after={pretty(payload.text)}
            beforeSays="as it was parked first"
            afterSays="as it is now"
          />
          <DiffView
            before={textsOf({ ...event, ...original }).headers}
            after={textsOf(event).headers}
            beforeSays="headers as they were"
            afterSays="headers now"
          />
          <ul class="body small">
            {edits.map(({ who, why, at }) => (
              <li key={at}>
                {new Date(at).toLocaleString()}, <b>{who}</b>: “{why}”
              </li>
            ))}
          </ul>
        </>
      )}
    </div>
  );
}

function Code({ text }: { readonly text: string }) {
  return (
    <div class="diff one">
      <pre role="region" tabIndex={0} aria-label="Payload">
        {text.split('\n').map((line, index) => (
          <span key={index} class="l" data-n={index + 1}>
            {line.split(mask).map((part, at) => (
              <>
                {at > 0 && <mark title="covered: only some may see it">{mask}</mark>}
                {part}
              </>
            ))}
            {'\n'}
          </span>
        ))}
      </pre>
    </div>
  );
}

function HeaderTable({ headers }: { readonly headers: readonly (readonly [string, string])[] }) {
  if (headers.length === 0) return <p class="body small quiet">It has no headers.</p>;
  return (
    <div class="scroll">
      <table>
        <thead>
          <tr>
            <th>header</th>
            <th>value</th>
          </tr>
        </thead>
        <tbody>
          {headers.map(([name, value]) => (
            <tr key={name}>
              <td>
                <code>{name}</code>
              </td>
              <td class="anywhere">{value === mask ? <mark>{value}</mark> : <code>{value}</code>}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function ErrorText({ event }: { readonly event: ShownEvent }) {
  const run = event.parkedRuns.at(-1);
  const error = run?.error;
  if (!error)
    return (
      <p class="body small">
        No error was thrown: the handler has said <code>{run?.stop}</code>. {run?.message}
      </p>
    );
  return (
    <div class="body stack">
      <p>
        <b>{error.type}</b>: {error.message}
        {error.code !== undefined && (
          <>
            {' '}
            (<code>{error.code}</code>)
          </>
        )}
      </p>
      {error.causes && (
        <ol class="small causes">
          {error.causes.map(({ type, message, code }) => (
            <li key={type + message}>
              because of <b>{type}</b>: {message} {code !== undefined && <code>{code}</code>}
            </li>
          ))}
        </ol>
      )}
      {error.stack !== undefined && (
        <pre class="stack-text" role="region" tabIndex={0} aria-label="Stack">
          {error.stack}
        </pre>
      )}
    </div>
  );
}

import { useEffect, useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import type { AnswerOf } from '../../src/api/routes.ts';
import { ApiError, ask } from '../api.ts';
import { many } from '../format.ts';
import { ActButton, ActDialog } from '../parts/act-dialog.tsx';
import { Glyph } from '../parts/glyph.tsx';
import { mayOperate } from '../session.ts';
import { shellWord } from '../shell-word.ts';
import { tell } from '../toast.tsx';
import { DiffView } from './diff-view.tsx';
import { dropDraft, type EventDraft, readDraft, storeDraft, storedDraft, textsOf } from './event-draft.ts';
import { withWords } from './lot-url.ts';
import { stopReplay } from './operation-acts.ts';
import type { ShownEvent } from './story.tsx';

type DryEdit = AnswerOf<'PATCH /parked/:id'>;

const typingMs = 350;

/** The form to edit an event. The draft is kept until it is saved or discarded. */
export function EditEvent({
  event,
  reload,
  uncover,
}: {
  readonly event: ShownEvent;
  readonly reload: () => void;
  readonly uncover: () => void;
}) {
  const { url, route } = useLocation();
  const { id } = event;
  const base = textsOf(event);
  const [draft, setDraft] = useState<EventDraft>(() => storedDraft(id) ?? base);
  const [answered, setAnswered] = useState<{ readonly of: string; readonly dry: DryEdit }>();
  const [refused, setRefused] = useState('');
  const read = readDraft(event, draft);
  const isChanged = Object.keys(read.body).length > 0;
  const isOutdated = draft.version !== event.version;
  const dialog = new URL(url, location.origin).searchParams.get('do');
  const asked = JSON.stringify(read.body);
  // The answer of the dry run may belong to older text. In this case, saving is not possible.
  const dry = answered?.of === asked ? answered.dry : undefined;
  const change = (changes: Partial<EventDraft>) => {
    const next = { ...draft, ...changes };
    setDraft(next);
    storeDraft(id, next);
  };

  useEffect(() => {
    setRefused('');
    if (asked === '{}' || !mayOperate()) return;
    const controller = new AbortController();
    const timer = setTimeout(() => {
      ask('PATCH /parked/:id', {
        path: { id },
        body: { ...JSON.parse(asked), dry: true },
        signal: controller.signal,
      }).then(
        (given) => setAnswered({ of: asked, dry: given }),
        (error: Error) => {
          if (!controller.signal.aborted) setRefused(error.message);
        },
      );
    }, typingMs);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [id, asked]);

  const leave = (says?: string) => {
    route(`/parked/${encodeURIComponent(id)}`);
    if (says !== undefined) tell(says);
  };
  const open = (name: string) => route(withWords(url, { do: name }));
  const canSave =
    isChanged && read.wrong === undefined && !isOutdated && dry !== undefined && dry.issues.length === 0;
  useEffect(() => {
    const pressed = (key: KeyboardEvent) => {
      if (key.target instanceof Element && key.target.closest('dialog')) return;
      if (key.key === 'Escape') leave(isChanged ? 'Your edit is kept as a draft.' : undefined);
      if (key.key === 'Enter' && (key.ctrlKey || key.metaKey) && canSave) open('save-and-replay');
    };
    document.addEventListener('keydown', pressed);
    return () => document.removeEventListener('keydown', pressed);
  });
  const isText = event.payload.encoding === 'utf8' && !event.payload.isCut;
  const isCovered = event.covered.length > 0 && event.payload.text.includes('[redacted]');
  return (
    <div class="stack">
      {isOutdated && <Outdated event={event} draft={draft} goOn={() => change({ version: event.version })} />}
      {isCovered && (
        <div class="banner">
          <span>
            Some fields are covered: {event.covered.join(', ')}. What is covered cannot be stored again.
          </span>
          <span class="acts">
            <ActButton onClick={uncover}>Uncover…</ActButton>
          </span>
        </div>
      )}
      <div class="sheet">
        <header>
          <h2>Edit</h2>
          <span class="small">The original is kept, and the event keeps its id and its idempotency key.</span>
          <span class="acts right">
            <button
              type="button"
              class="btn tiny"
              onClick={() => {
                dropDraft(id);
                leave(isChanged ? 'The edit is dropped.' : undefined);
              }}
            >
              Drop it
            </button>
          </span>
        </header>
        <div class="body stack">
          <label class="field">
            <span>Payload</span>
            <textarea
              id="edit-payload"
              class="mono"
              spellcheck={false}
              rows={Math.min(28, Math.max(6, draft.payload.split('\n').length + 1))}
              value={isText ? draft.payload : ''}
              disabled={!isText}
              placeholder={isText ? '' : 'It is not text, or too large to be edited here; headers can be.'}
              aria-invalid={read.wrong?.startsWith('Payload') ?? false}
              aria-describedby="edit-says"
              onInput={(typed) => change({ payload: typed.currentTarget.value })}
            />
          </label>
          <label class="field">
            <span>Headers, one a line</span>
            <textarea
              id="edit-headers"
              class="mono"
              spellcheck={false}
              rows={Math.max(3, draft.headers.split('\n').length + 1)}
              value={draft.headers}
              aria-invalid={read.wrong?.startsWith('Headers') ?? false}
              aria-describedby="edit-says"
              onInput={(typed) => change({ headers: typed.currentTarget.value })}
            />
          </label>
          <div id="edit-says" aria-live="polite">
            <Judgement wrong={read.wrong ?? refused} dry={dry} isChanged={isChanged} />
          </div>
          <div class="acts">
            <button
              type="button"
              class="btn first"
              disabled={!canSave}
              onClick={() => open('save-and-replay')}
            >
              Save and replay… <kbd class="wide">Ctrl ↵</kbd>
            </button>
            <button type="button" class="btn" disabled={!canSave} onClick={() => open('save')}>
              Save…
            </button>
            <button
              type="button"
              class="btn"
              onClick={() => leave(isChanged ? 'Your edit is kept as a draft.' : undefined)}
            >
              Leave it <kbd>Esc</kbd>
            </button>
          </div>
        </div>
        {isChanged && draft.payload !== base.payload && (
          <DiffView
            before={base.payload}
            after={draft.payload}
            beforeSays="as it is parked"
            afterSays="as it will be"
          />
        )}
        {isChanged && draft.headers !== base.headers && (
          <DiffView
            before={base.headers}
            after={draft.headers}
            beforeSays="headers as they are"
            afterSays="headers as they will be"
          />
        )}
      </div>
      {(dialog === 'save' || dialog === 'save-and-replay') && answered && (
        <ActDialog
          title={dialog === 'save' ? 'Save the edit' : 'Save the edit and replay the event'}
          verb={dialog === 'save' ? 'Save' : 'Save and replay'}
          command={commandOf(id, answered.dry.changes, dialog === 'save-and-replay')}
          canSend={canSave}
          close={() => route(withWords(location.pathname + location.search, { do: undefined }), true)}
          act={async (why, key) => {
            const headers = { 'idempotency-key': key };
            try {
              await ask('PATCH /parked/:id', {
                path: { id },
                body: { ...read.body, version: draft.version, why },
                headers,
              });
            } catch (error) {
              if (error instanceof ApiError && error.kind === 'changed') reload();
              throw error;
            }
            dropDraft(id);
            if (dialog === 'save-and-replay') await replay(id, why, headers);
            else tell('The edit is stored. The original is kept beside it.');
            route(`/parked/${encodeURIComponent(id)}`, true);
            reload();
          }}
        >
          <Changes changes={answered.dry.changes} />
          <p class="soft">
            {dialog === 'save' ? 'It stays parked until it is replayed. ' : 'It is published again at once. '}
            The original is kept, and the event keeps its id and its idempotency key, so that no effect is
            made twice.
          </p>
          {isOutdated && <Outdated event={event} draft={draft} />}
        </ActDialog>
      )}
    </div>
  );
}

async function replay(id: string, why: string, headers: Readonly<Record<string, string>>): Promise<void> {
  const { operation } = await ask('POST /replays', {
    body: { filter: { id: [id] }, expected: 1, why },
    headers,
  });
  tell('The edit is stored, and the replay of one event has begun.', () => void stopReplay(operation!.id), {
    undoSays: 'Stop it',
    link: { href: `/replays/${encodeURIComponent(operation!.id)}`, says: 'Show it' },
  });
}

/** Shows what another person has changed in the event since the edit began. The draft is kept. */
function Outdated({
  event,
  draft,
  goOn,
}: {
  readonly event: ShownEvent;
  readonly draft: EventDraft;
  readonly goOn?: () => void;
}) {
  const last = event.edits.at(-1);
  return (
    <div class="banner is-parked" role="alert">
      <div>
        <b>
          {last
            ? `${last.who} has changed it since you began: “${last.why}”.`
            : 'It has changed since you began.'}
        </b>
        {last && <Changes changes={last.changes} />}
        <p class="small">
          Yours is of version {draft.version}, it has version {event.version} now. What you typed is kept.
        </p>
      </div>
      {goOn && (
        <span class="acts">
          <button type="button" class="btn" onClick={goOn}>
            I have seen it, go on with mine
          </button>
        </span>
      )}
    </div>
  );
}

function Judgement({
  wrong,
  dry,
  isChanged,
}: {
  readonly wrong: string;
  readonly dry: DryEdit | undefined;
  readonly isChanged: boolean;
}) {
  if (wrong !== '') return <p class="is-parked">{wrong}</p>;
  if (!isChanged) return <p class="quiet">Nothing has changed yet.</p>;
  if (!dry) return <p class="quiet">The server looks at it…</p>;
  return (
    <>
      {dry.issues.length === 0 ? (
        <p>
          <Glyph state="ok" label="good" /> {many(dry.changes.length, 'change')}; the server has nothing
          against it.
        </p>
      ) : (
        <ul class="is-parked">
          {dry.issues.map((issue) => (
            <li key={issue}>It does not fit: {issue}</li>
          ))}
        </ul>
      )}
      <Changes changes={dry.changes} />
    </>
  );
}

function Changes({ changes }: { readonly changes: DryEdit['changes'] }) {
  return (
    <ul class="changes">
      {changes.map(({ path, before, after }) => (
        <li key={path}>
          <code>{path}</code> <del>{before ?? 'nothing'}</del> → <ins>{after ?? 'nothing'}</ins>
        </li>
      ))}
    </ul>
  );
}

const flagsMax = 6;

function commandOf(id: string, changes: DryEdit['changes'], withReplay: boolean): string {
  const flags = changes.map(({ path, after }) => {
    if (path.startsWith('headers.')) return `--header ${shellWord(`${path.slice(8)}=${textIn(after)}`)}`;
    return after === undefined || path === 'payload' ? undefined : `--set ${shellWord(`${path}=${after}`)}`;
  });
  const isShort = flags.length <= flagsMax && flags.every((flag) => flag !== undefined);
  return [
    'holdfast dlq edit',
    shellWord(id),
    ...(isShort ? flags : ['--payload FILE']),
    ...(withReplay ? ['--replay'] : []),
  ].join(' ');
}

function textIn(json: string | undefined): string {
  if (json === undefined) return '';
  try {
    return String(JSON.parse(json));
  } catch {
    return json;
  }
}

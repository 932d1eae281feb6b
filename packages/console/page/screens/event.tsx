import { useEffect, useState } from 'preact/hooks';
import { useLocation, useRoute } from 'preact-iso';
import { ApiError, ask } from '../api.ts';
import { many } from '../format.ts';
import { useKeys } from '../keys.ts';
import { Checks } from '../parked/checks.tsx';
import { EditEvent } from '../parked/edit-event.tsx';
import { EventContent } from '../parked/event-content.tsx';
import { dropDraft, storedDraft } from '../parked/event-draft.ts';
import { withWords } from '../parked/lot-url.ts';
import { DiscardDialog, dayOf, KeepDialog, ReplayDialog, RestoreDialog } from '../parked/many-dialogs.tsx';
import { type ShownEvent, StoryChart, StoryList } from '../parked/story.tsx';
import { usePreview } from '../parked/use-preview.ts';
import { ActButton, ActDialog, blockedBecause, CommandLine } from '../parts/act-dialog.tsx';
import { Ago } from '../parts/ago.tsx';
import { type State, Tag } from '../parts/glyph.tsx';
import { Empty, Trouble } from '../parts/quiet.tsx';
import { mayOperate } from '../session.ts';
import { shellWord } from '../shell-word.ts';
import { useAnswer } from '../use-answer.ts';

const refreshMs = 5000;
const neighboursMax = 200;

const states: Readonly<Record<ShownEvent['status'], State>> = {
  parked: 'parked',
  replaying: 'waiting',
  resolved: 'ok',
  discarded: 'over',
};

export function Event() {
  const { url, route } = useLocation();
  const { params } = useRoute();
  const id = params.id ?? '';
  const query = new URL(url, location.origin).searchParams;
  const isEdited = query.has('edit');
  const [uncovered, setUncovered] = useState<ShownEvent>();
  const asked = useAnswer('GET /parked/:id', { path: { id } }, isEdited ? 0 : refreshMs);
  const given = asked.answer?.event;
  // Hidden values that the user has uncovered stay visible until the event changes.
  const event =
    uncovered?.id === id && uncovered.version === given?.version
      ? { ...given, ...uncoveredParts(uncovered) }
      : given;
  useEffect(() => {
    document.querySelector<HTMLElement>(isEdited ? '#edit-payload' : 'h1')?.focus();
  }, [isEdited, id, event === undefined]);
  if (!event)
    return (
      <section class="view" aria-busy={!asked.error}>
        {asked.error instanceof ApiError && asked.error.status === 404 ? (
          <div class="sheet">
            <h1 class="unseen" tabIndex={-1}>
              No such event
            </h1>
            <Empty title={asked.error.message}>
              <a href="/parked">To the parking lot</a> ·{' '}
              <a href={`/audit?of=${encodeURIComponent(`event:${id}`)}`}>What was done to it</a>
            </Empty>
          </div>
        ) : (
          <Trouble answered={asked} />
        )}
      </section>
    );
  const open = (dialog: string) => route(withWords(url, { do: dialog }));
  const close = () => route(withWords(location.pathname + location.search, { do: undefined }), true);
  const props = {
    ...{ filter: { id: [id], status: [event.status] }, of: 'by its id', close },
    done: asked.again,
  };
  const dialog = query.get('do');
  return (
    <section class="view" aria-labelledby="event-title">
      <EventHeader event={event} isEdited={isEdited} open={open} />
      <Trouble answered={asked} />
      {!isEdited && <DraftBanner id={id} />}
      <div class="two">
        {isEdited ? (
          <EditEvent event={event} reload={asked.again} uncover={() => open('uncover')} />
        ) : (
          <div class="stack">
            <div class="sheet">
              <header>
                <h2>Story</h2>
                <span class="small">attempts, waits and what people did</span>
              </header>
              <div class="body">
                <StoryChart runs={event.parkedRuns} />
                <StoryList event={event} />
              </div>
            </div>
            <EventContent event={event} uncover={() => open('uncover')} />
          </div>
        )}
        <div class="stack">
          {event.status === 'parked' && mayOperate() && <BeforeReplay id={id} version={event.version} />}
          <Facts event={event} open={open} />
          <div class="sheet">
            <header>
              <h2>The same in a shell</h2>
            </header>
            <div class="body">
              <CommandLine command={`holdfast dlq show ${shellWord(id)}`} />
            </div>
          </div>
        </div>
      </div>
      {dialog === 'replay' && <ReplayDialog {...props} />}
      {dialog === 'discard' && <DiscardDialog {...props} />}
      {dialog === 'restore' && <RestoreDialog {...props} />}
      {dialog === 'keep' && <KeepDialog {...props} />}
      {dialog === 'uncover' && (
        <ActDialog
          title="Uncover this event"
          verb="Uncover"
          close={close}
          act={async (why, key) => {
            const answer = await ask('POST /parked/:id/uncover', {
              path: { id },
              body: { why },
              headers: { 'idempotency-key': key },
            });
            setUncovered(answer.event);
          }}
        >
          <p class="soft">
            You see the values of {event.covered.join(', ')} on this page, until you leave it. That you did is
            in the audit log.
          </p>
        </ActDialog>
      )}
    </section>
  );
}

function uncoveredParts({ payload, headers, original, edits }: ShownEvent) {
  return { payload, headers, edits, covered: [], ...(original && { original }) };
}

function EventHeader({
  event,
  isEdited,
  open,
}: {
  readonly event: ShownEvent;
  readonly isEdited: boolean;
  readonly open: (dialog: string) => void;
}) {
  const { url, route } = useLocation();
  const { id, type, topic, key, tenant, status, parkings, parkedRuns } = event;
  const last = parkedRuns.at(-1);
  const group = last?.error?.fingerprint ?? last?.stop ?? '';
  const { newer, older } = useNeighbours(event, group);
  const tries = parkedRuns.reduce((sum, run) => sum + run.finalAttempt, 0);
  const go = (to: string | undefined) => to !== undefined && route(eventUrl(to));
  const act = (dialog: string) => () => {
    if (blockedBecause() === undefined) open(dialog);
  };
  const isParked = status === 'parked';
  useKeys({
    j: { says: 'next event of the group', run: () => go(older) },
    k: { says: 'previous event of the group', run: () => go(newer) },
    n: { says: 'keep it for longer', run: act('keep') },
    ...(isParked && {
      e: {
        says: 'edit it',
        run: () => blockedBecause() === undefined && route(withWords(url, { edit: '' })),
      },
      r: { says: 'replay it', run: act('replay') },
      d: { says: 'discard it', run: act('discard') },
    }),
  });
  return (
    <header>
      <div>
        <p class="crumbs">
          <a href="/parked">Parking lot</a> ›{' '}
          <a href={`/parked?group=${encodeURIComponent(group)}&view=events`}>{last?.reason ?? 'group'}</a> ›{' '}
          <code>{id}</code>
        </p>
        <h1 id="event-title" tabIndex={-1}>
          {type ?? topic}
          {key !== undefined && ` for ${key}`}
        </h1>
        <p>
          <Tag state={states[status]}>
            {status}
            {parkings > 1 && (parkings === 2 ? ' twice' : ` ${parkings} times`)}
          </Tag>{' '}
          {tenant !== undefined && (
            <>
              tenant <code>{tenant}</code>,{' '}
            </>
          )}
          topic <code>{topic}</code>. Tried {many(tries, 'time')} in {many(parkedRuns.length, 'run')}; kept
          until {dayOf(event.removedAt)}.{' '}
          {event.discarded && `Discarded by ${event.discarded.who}: “${event.discarded.why}”.`}
        </p>
      </div>
      <div class="acts">
        {newer !== undefined && (
          <a class="btn" rel="prev" href={eventUrl(newer)}>
            Previous <kbd>k</kbd>
          </a>
        )}
        {older !== undefined && (
          <a class="btn" rel="next" href={eventUrl(older)}>
            Next <kbd>j</kbd>
          </a>
        )}
        <ActButton onClick={() => open('keep')}>
          Keep longer… <kbd>n</kbd>
        </ActButton>
        {isParked && (
          <>
            <ActButton onClick={() => open('discard')}>
              Discard… <kbd>d</kbd>
            </ActButton>
            {!isEdited && (
              <ActButton onClick={() => route(withWords(url, { edit: '' }))}>
                Edit <kbd>e</kbd>
              </ActButton>
            )}
            <ActButton isFirst={!isEdited} onClick={() => open('replay')}>
              Replay… <kbd>r</kbd>
            </ActButton>
          </>
        )}
        {status === 'discarded' && (
          <ActButton isFirst onClick={() => open('restore')}>
            Take back…
          </ActButton>
        )}
      </div>
    </header>
  );
}

function eventUrl(id: string): string {
  return `/parked/${encodeURIComponent(id)}`;
}

/** The next newer and the next older event of the same group. */
function useNeighbours({ id, parkedAt }: ShownEvent, group: string) {
  const near = useAnswer('GET /parked', { query: { group, limit: neighboursMax } });
  const items = near.answer?.items ?? [];
  const at = items.findIndex((each) => each.id === id);
  // If the event is not among the first events of the list, only its older neighbor can be found.
  const isFar = near.answer !== undefined && at < 0;
  const far = useAnswer('GET /parked', isFar ? { query: { group, to: parkedAt + 1, limit: 50 } } : undefined);
  const later = far.answer?.items ?? [];
  const farAt = later.findIndex((each) => each.id === id);
  return at >= 0
    ? { newer: items[at - 1]?.id, older: items[at + 1]?.id }
    : { newer: undefined, older: later[farAt + 1]?.id };
}

function DraftBanner({ id }: { readonly id: string }) {
  const { url } = useLocation();
  const [isDropped, setDropped] = useState(false);
  if (isDropped || !storedDraft(id)) return null;
  return (
    <div class="banner">
      <span>You have begun to edit it; nothing of that is stored yet.</span>
      <span class="acts">
        <a class="btn" href={withWords(url, { edit: '' })}>
          Go on
        </a>
        <button
          type="button"
          class="btn"
          onClick={() => {
            dropDraft(id);
            setDropped(true);
          }}
        >
          Drop it
        </button>
      </span>
    </div>
  );
}

function BeforeReplay({ id, version }: { readonly id: string; readonly version: number }) {
  const { preview } = usePreview('POST /replays', { filter: { id: [id] }, expected: version });
  if (!preview) return null;
  return (
    <div class="sheet">
      <header>
        <h2>Before you replay</h2>
      </header>
      <div class="body">
        <Checks checks={preview.checks} />
        {preview.count === 0 && <p class="small">A replay has it already.</p>}
      </div>
    </div>
  );
}

function Facts({ event, open }: { readonly event: ShownEvent; readonly open: (dialog: string) => void }) {
  const { key, topic, behind } = event;
  const waiting = `/topics/${encodeURIComponent(topic)}?state=behind&key=${encodeURIComponent(key ?? '')}`;
  const last = event.parkedRuns.at(-1);
  return (
    <div class="sheet">
      <header>
        <h2>Facts</h2>
      </header>
      <div class="body">
        <dl class="facts">
          <dt>first seen</dt>
          <dd>
            <Ago at={event.firstSeenAt} />
          </dd>
          <dt>parked</dt>
          <dd>
            <Ago at={event.parkedAt} />
            {event.parkings > 1 && `, ${event.parkings} times so far`}
          </dd>
          {key !== undefined && (
            <>
              <dt>key</dt>
              <dd>
                <code>{key}</code>{' '}
                {behind !== undefined && behind > 0 && (
                  <a class="small" href={waiting}>
                    {behind >= 200 ? '200 or more' : behind} wait behind it
                  </a>
                )}
              </dd>
            </>
          )}
          {event.tenant !== undefined && (
            <>
              <dt>tenant</dt>
              <dd>
                <a href={`/parked?tenant=${encodeURIComponent(event.tenant)}`}>
                  <code>{event.tenant}</code>
                </a>
              </dd>
            </>
          )}
          <dt>topic</dt>
          <dd>
            <a href={`/topics/${encodeURIComponent(topic)}`}>
              <code>{topic}</code>
            </a>
          </dd>
          <dt>correlation</dt>
          <dd>
            <code>{event.correlationId}</code>
          </dd>
          <dt>idempotency</dt>
          <dd>
            <code>{event.idempotencyKey}</code>
          </dd>
          <dt>patience</dt>
          <dd>{event.expiresAt === undefined ? 'none: nobody waits' : <Ago at={event.expiresAt} />}</dd>
          {last && (
            <>
              <dt>error</dt>
              <dd>
                {last.reason}: {last.message}
              </dd>
              {last.consumer !== undefined && (
                <>
                  <dt>consumer</dt>
                  <dd>
                    <code>{last.consumer}</code>
                  </dd>
                </>
              )}
            </>
          )}
          {(event.operation ?? event.replayedBy) !== undefined && (
            <>
              <dt>replay</dt>
              <dd>
                <a href={`/replays/${encodeURIComponent(event.operation ?? event.replayedBy ?? '')}`}>
                  {event.operation === undefined ? 'the latest that had it' : 'it is in one now'}
                </a>
              </dd>
            </>
          )}
          <dt>removed</dt>
          <dd>
            <Ago at={event.removedAt} future />{' '}
            <ActButton isTiny onClick={() => open('keep')}>
              keep longer…
            </ActButton>
          </dd>
        </dl>
      </div>
    </div>
  );
}

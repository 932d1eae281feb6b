import { ask } from './api.ts';
import { session } from './session.ts';
import { tell } from './toast.tsx';

/**
 * Shows a message after an act. It has an undo button if the latest act on the subject `of` (such as
 * `topic:orders`) is by this user and can be undone.
 */
export async function tellDone(says: string, of: string): Promise<void> {
  const { items } = await ask('GET /audit', { query: { of, limit: 1 } });
  const [entry] = items;
  const isMine = entry?.canUndo && entry.who === session.value?.who;
  tell(says, isMine ? () => void undoAct(entry.id) : undefined);
}

async function undoAct(id: string): Promise<void> {
  try {
    await ask('POST /audit/:id/undo', { path: { id }, body: { why: 'undone at once' } });
    tell('Undone.');
  } catch (error) {
    tell((error as Error).message);
  }
}

import { AsyncLocalStorage } from 'node:async_hooks';
import { keepSurroundingsIn, type Surroundings } from './surroundings.ts';

export { detached, type Surroundings, surroundedBy, surroundings } from './surroundings.ts';

/**
 * Importing this module lets patience, ownership and the customer's signal ride along asynchronous calls. They
 * are written only at the edges (a server request, a consumed event, an assembly step, `run` with `ambient: true`)
 * and read everywhere: a write costs more than a whole call, a read next to nothing.
 */
keepSurroundingsIn(new AsyncLocalStorage<Surroundings | undefined>());

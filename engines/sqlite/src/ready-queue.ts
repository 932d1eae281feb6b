/**
 * The values of the column `queue` in `holdfast_ready`. First tries, retries and suspects are leased separately. A
 * suspect is an event whose lease has expired: the worker may have died because of this event.
 */
export const firstTries = 0;
export const retries = 1;
export const suspects = 2;

/** SQL for the queue that an event belongs to. */
export const queueOf = `CASE WHEN event.deaths > 0 THEN ${suspects} WHEN event.attempts > 0 THEN ${retries} ELSE ${firstTries} END`;

/** SQL that is true if the event is the head of its key: no earlier event with the same key is stored. */
export const isHead = `(event.order_key IS NULL OR NOT EXISTS (
  SELECT 1 FROM holdfast_event earlier
  WHERE earlier.topic = event.topic AND earlier.order_key = event.order_key AND earlier.seq < event.seq))`;

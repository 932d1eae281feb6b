/**
 * The values of the column `queue`. A suspect is an event whose lease expired: it may have crashed its
 * worker.
 */
export const firstTries = 0;
export const retries = 1;
export const suspects = 2;

export const queueOf = `CASE WHEN event.deaths > 0 THEN ${suspects} WHEN event.attempts > 0 THEN ${retries} ELSE ${firstTries} END`;

/** SQL that is true if no earlier event with the same key is stored. */
export const isHead = `(event.order_key IS NULL OR NOT EXISTS (
  SELECT 1 FROM holdfast_event earlier
  WHERE earlier.topic = event.topic AND earlier.order_key = event.order_key AND earlier.seq < event.seq))`;

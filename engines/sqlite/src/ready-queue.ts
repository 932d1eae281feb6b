/** The queues of `holdfast_ready`: first tries, retries and suspects are leased apart. */
export const firstTries = 0;
export const retries = 1;
export const suspects = 2;

/** The queue that an event belongs to. */
export const queueOf = `CASE WHEN event.deaths > 0 THEN ${suspects} WHEN event.attempts > 0 THEN ${retries} ELSE ${firstTries} END`;

/** An event is the head of its key when the store has no earlier event with the same key. */
export const isHead = `(event.order_key IS NULL OR NOT EXISTS (
  SELECT 1 FROM holdfast_event earlier
  WHERE earlier.topic = event.topic AND earlier.order_key = event.order_key AND earlier.seq < event.seq))`;

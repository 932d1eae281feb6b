/** For an event that already has a row: parks it again if its replay failed, or if it was resolved. */
export const parkAgain = `ON CONFLICT (id) DO UPDATE SET status = 'parked', parked_at = excluded.parked_at,
  parkings = parked.parkings + 1, removed_at = excluded.removed_at, operation = NULL, topic = excluded.topic,
  first_seen_at = excluded.first_seen_at, expires_at = excluded.expires_at, bytes_are_text = excluded.bytes_are_text,
  type = excluded.type, key = excluded.key, tenant = excluded.tenant, origin = excluded.origin, replay = excluded.replay,
  body = excluded.body, bytes = excluded.bytes, extras = excluded.extras, reason = excluded.reason, message = excluded.message,
  stop = excluded.stop, final_attempt = excluded.final_attempt, fingerprint = excluded.fingerprint, error = excluded.error,
  story = excluded.story, discarded = NULL
WHERE parked.operation = excluded.replay OR parked.status = 'resolved'`;

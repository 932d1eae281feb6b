/**
 * Parks an event again that already has a row, if its replay failed or if it was resolved. The previous
 * parking is kept in `earlier`.
 */
export const parkAgain = `ON CONFLICT (id) DO UPDATE SET status = 'parked', parked_at = excluded.parked_at,
  parkings = parked.parkings + 1, version = parked.version + 1, removed_at = excluded.removed_at, operation = NULL,
  replayed_by = CASE WHEN parked.operation = excluded.replay THEN excluded.replay ELSE parked.replayed_by END,
  changed_by = NULL, removed_at_before = NULL, topic = excluded.topic,
  first_seen_at = excluded.first_seen_at, expires_at = excluded.expires_at, bytes_are_text = excluded.bytes_are_text,
  type = excluded.type, key = excluded.key, tenant = excluded.tenant, origin = excluded.origin, replay = excluded.replay,
  body = excluded.body, bytes = excluded.bytes, extras = excluded.extras, reason = excluded.reason, message = excluded.message,
  stop = excluded.stop, final_attempt = excluded.final_attempt, consumer = excluded.consumer, fingerprint = excluded.fingerprint,
  error = excluded.error, story = excluded.story, discarded = NULL,
  earlier = CASE WHEN cardinality(parked.earlier) < 4 THEN parked.earlier ELSE parked.earlier[1:1] || parked.earlier[3:4] END
    || json_build_object('reason', parked.reason, 'message', parked.message, 'stop', parked.stop, 'finalAttempt', parked.final_attempt,
      'consumer', parked.consumer, 'error', parked.error::json, 'story', parked.story::json, 'parkedAt', parked.parked_at,
      'replay', parked.replay)::text
WHERE parked.operation = excluded.replay OR parked.status = 'resolved'`;

/**
 * Our option names, each with the names that other libraries use for the same option. Error messages use them
 * to suggest our name.
 */
const peerWords = {
  attempts: 'retries maxRetries maxAttempts',
  attemptTimeout: 'timeout',
  'backoff.base': 'delay retryDelay minTimeout',
  'backoff.cap': 'maxTimeout',
  'backoff.factor': 'factor',
  'breaker.failureRatio': 'threshold errorThresholdPercentage',
  'breaker.openFor': 'halfOpenAfter resetTimeout',
  'subscribe()': 'onRetry',
};

/**
 * Returns our name for the option `word` of another library; undefined if `names` has no such option. The
 * name is a path relative to the object with the options `names`.
 */
export function peerWord(word: string, value: unknown, names: readonly string[]): string | undefined {
  for (const [ours, theirs] of Object.entries(peerWords)) {
    if (!theirs.split(' ').includes(word)) continue;
    const [part, field = ''] = ours.split('.') as [string, string?];
    if (word === 'timeout' && names.includes('patience'))
      return names.includes(ours) ? `${ours}, or patience for all attempts together` : 'patience';
    const isHere = names.includes(part) || (word === 'onRetry' && names.includes('attempts'));
    const place = isHere
      ? ours
      : names.includes(field)
        ? field
        : names.includes('policy')
          ? `policy.${ours}`
          : undefined;
    return place && word.endsWith('etries') && Number(value) >= 0
      ? `${place}: ${Number(value) + 1}, which counts the first one`
      : place;
  }
  return undefined;
}

/**
 * The meaning of each field of a policy document, by its path: for JSON Schema and the docs. It is separate from the tables, so
 * that bundles which only run policies do not contain it.
 */
export const fieldNotes: Readonly<Record<string, string>> = {
  name: 'The name of this policy in lists, notices and stories. Use each name for one policy of a process.',

  patience: 'The time limit for everything, waits and retries included.',
  attempts: 'The most attempts, the first included. `unlimited` needs an explicit `patience`.',
  backoff: 'The waits between attempts. `false`: no waits. A function returns the ms itself.',
  'backoff.strategy': 'How waits grow from one attempt to the next.',
  'backoff.base': 'The first wait, before jitter. After a throttled attempt it is at least 1 s.',
  'backoff.factor': 'The growth of `exponential` from wait to wait, and the exponent of `polynomial`.',
  'backoff.cap': 'The longest wait, except where a server asks for more time.',
  'backoff.jitter':
    'The random part of a wait. `full`: all of it, `equal`: half, `decorrelated`: between the base and three times the wait before; or a share from 0 to 1.',
  'backoff.jitter.plusMinus': 'Each wait is moved by up to this time in either direction.',
  retryOn:
    'Which failures are worth another attempt besides those of `network` and `http`: names of packs, packs, or functions that classify an outcome.',
  retryOnly:
    'The same, instead of `network` and `http`: only these failures and errors with a mark are tried again.',
  neverOn: 'Classes of errors that are never retried, whatever the packs say.',
  respectServer: 'Whether hints of a server on when to try again are followed.',
  'respectServer.cap': 'A server that asks for a longer wait ends the work.',

  attemptTimeout:
    'How long one attempt may take. `auto`: three times the measured p99.9 and at least six times the median; while fewer than 1,000 answers were measured, an equal share of the patience, which is lifted when it seems too short. `split`: an equal share of the patience that is left. `none`: all of it.',

  budget: 'Limits the retries that a caller adds to its own traffic.',
  'budget.ratio':
    'Tokens that a success adds; a retry that fails takes one. 0.1 allows one failing retry for ten successes.',
  'budget.window':
    'The bucket holds at most `ratio` of the calls made in this time, but always room for one token, and for more while retries succeed.',

  breaker: 'Stops calling a target that is failing, and probes it until it succeeds again.',
  'breaker.window': 'The calls that are counted: those of a duration, or a number of calls.',
  'breaker.window.calls': 'Counts this number of calls, however old they are.',
  'breaker.minimum': 'With fewer calls in the window, no ratio opens it.',
  'breaker.failureRatio': 'The share of failed calls that opens it.',
  'breaker.consecutive':
    'Failures in a row that open it, whatever the ratio; heavy traffic needs more. 0: never.',
  'breaker.slow': 'Whether slow calls open it as well.',
  'breaker.slow.over':
    'A call that takes longer is slow. `auto`: 10 times the median of the target, and more than a second; needs an attempt timeout that learns.',
  'breaker.slow.ratio': 'The share of slow calls that opens it.',
  'breaker.openFor':
    'The shortest and the longest time it stays open. The time grows with the outage, less a random part of up to half.',
  'breaker.probes': 'The most probes in flight, and the successes in a row that close it.',
  'breaker.whenOpen':
    '`stop` refuses at once. `wait` waits until it admits again, if patience allows. With unlimited attempts `wait` is the default.',

  bulkhead: 'Limits the attempts in flight at a target.',
  'bulkhead.concurrent': 'The most attempts in flight.',
  'bulkhead.queue': 'The most attempts that wait for a permit, by priority; the others are refused.',

  limiter: 'Limits the rate of attempts at a target.',
  'limiter.rate': 'Attempts per second, minute or hour.',
  'limiter.burst': 'Attempts that may pass at once when there were none for a while.',
  'limiter.wait': 'The longest wait of an attempt for its turn, within patience; 0 refuses at once.',

  throttle: 'Sends fewer requests to a target that accepts fewer.',
  'throttle.k': 'Sends at most `k` times what the target has been accepting.',
  'throttle.window': 'How far back requests are counted.',

  hedge: 'Starts a second attempt when the first is slow, and takes the first answer.',
  'hedge.extraLoad':
    'The largest share of extra calls. Without `percentile` and `after` it also sets the delay: 0.02 hedges at p98.',
  'hedge.percentile': 'Hedges at this percentile (0 to 1) of the durations of attempts.',
  'hedge.after': 'Hedges after this time.',

  choice: 'Chooses among the `targets` of a run, and ejects outliers for a while.',
  'choice.consecutive':
    'Failures in a row after which a target is ejected, unless most of the others are failing too.',
  'choice.ejectFor': 'How long the first ejection lasts, and the longest.',

  cache: 'Caches results by the `cacheKey` of a run. Concurrent calls with one key share one flight.',
  'cache.fresh': 'For this time a result replaces the call.',
  'cache.staleIfError': 'For this time after `fresh`, a result is served instead of a failure.',
  'cache.entriesMax': 'The most results that are kept; the least recently used is dropped first.',

  fallback: 'Gives another result when the work has failed.',
  'fallback.to':
    'A value, a function of the failure, or a chain of them: the first that does not throw. Required.',
  'fallback.reserve': 'The part of the patience that is reserved for the functions of the chain.',

  mode: '`enforce` acts. `observe` calls once, and only counts what it would have done.',
  'mode.enforce': 'The share of the work that is enforced; the rest is observed.',
};

/**
 * The description of each field of a policy document, for JSON Schema and the docs. `npm run options` writes
 * this file, from the comments of `PolicySpec`. It is a separate file, so that bundles can leave it out.
 */
export const fieldNotes: Readonly<Record<string, string>> = {
  name: 'The name of this policy in lists, notices and stories. Use each name for only one policy in a process.',
  patience: 'The time limit of a run: all attempts and the waits between them.',
  attempts: 'The most attempts, including the first. `unlimited` needs an explicit `patience`.',
  backoff: 'The waits between attempts. `false`: no waits. A function returns the wait in ms.',
  'backoff.strategy': 'How the waits grow from one attempt to the next.',
  'backoff.base': 'The first wait, before jitter. After a throttled attempt it is at least 1 s.',
  'backoff.factor':
    'For `exponential`: each wait is this many times the previous one. For `polynomial`: the exponent.',
  'backoff.cap': 'The longest wait, unless a server asks for a longer one.',
  'backoff.jitter':
    'Which part of a wait is random. `full`: the whole wait. `equal`: half of the wait. `decorrelated`: a random wait between the base and three times the previous wait. A number from 0 to 1: this share of the wait.',
  'backoff.jitter.plusMinus': 'Each wait becomes longer or shorter by a random time of up to this duration.',
  retryOn:
    "Which failures are retried in addition to those of the packs `network` and `http`. Give names of packs, packs, or functions. A function gets an outcome, not an error: `(outcome) => !outcome.ok && outcome.error instanceof PaymentBusy ? 'transient' : undefined`.",
  retryOnly:
    'Like `retryOn`, but instead of the packs `network` and `http`. Only these failures, and errors marked with `transient` or `retryAfter`, are retried.',
  neverOn:
    'Error classes of your application, such as `OutOfStock`, that are never retried, whatever the packs say. Not `TypeError`: `fetch` throws it for failures of the network.',
  respectServer: 'Whether to follow a server that says when to try again, for example with Retry-After.',
  'respectServer.cap': 'If a server asks for a longer wait than this, the work ends without a retry.',
  attemptTimeout:
    'The time limit of one attempt. `auto`: three times the measured p99.9, and at least six times the median. With fewer than 1,000 measured answers, `auto` is an equal share of the patience, or more if that share seems too short. `split`: an equal share of the remaining patience. `none`: all the remaining patience.',
  budget:
    'Limits the number of retries in proportion to successful calls, so that retries do not overload a failing target.',
  'budget.ratio':
    'How many tokens each success adds to the budget. Each retry that fails takes one token. So 0.1 allows one failed retry for ten successes.',
  'budget.window':
    'The budget holds at most `ratio` tokens for each call in this time, and always at least one token. Successful retries raise this minimum.',
  breaker:
    'Stops calling a target that is failing, and sends a few trial calls (probes) until the target succeeds again.',
  'breaker.window':
    'Which calls are counted. A duration: the calls of that time. `{ calls: 100 }`: the last 100 calls.',
  'breaker.window.calls': 'The breaker counts this many of the latest calls, however old they are.',
  'breaker.minimum':
    'With fewer counted calls than this, the ratios are ignored. If `window` is fewer calls than this, a full window is enough.',
  'breaker.failureRatio': 'If this share of the counted calls failed (0 to 1), the breaker opens.',
  'breaker.consecutive':
    'The breaker opens after this many failures in a row, whatever the ratio. With heavy traffic, it takes more. 0: failures in a row do not open it.',
  'breaker.slow': 'Whether slow calls open the breaker, as failed calls do.',
  'breaker.slow.over':
    'A call that takes longer than this is slow. `auto`: 10 times the median duration at the target, and at least one second. `auto` needs measured durations, so `attemptTimeout` must be `auto` or `hedge` must be on.',
  'breaker.slow.ratio': 'If this share of the counted calls was slow (0 to 1), the breaker opens.',
  'breaker.openFor':
    'The shortest and the longest time that the breaker stays open. It stays open longer the longer the target has been failing. Jitter shortens the time by at most half.',
  'breaker.probes':
    'While half-open: the most trial calls (probes) in flight. The same number must succeed in a row to close the breaker.',
  'breaker.whenOpen':
    'What a call does while the breaker is open. `stop`: it is refused immediately. `wait`: it waits until the breaker admits calls again, if patience allows. With unlimited attempts, `wait` is the default.',
  bulkhead: 'Limits the attempts in flight at a target.',
  'bulkhead.concurrent': 'The most attempts in flight.',
  'bulkhead.queue':
    'The most attempts that wait in the queue, ordered by priority. Further attempts are refused.',
  limiter: 'Limits the rate of attempts at a target.',
  'limiter.rate': 'The highest rate of attempts, per second, minute or hour.',
  'limiter.burst': 'How many attempts may start at once after a time without attempts.',
  'limiter.wait':
    'How long an attempt above the rate may wait, within patience. 0: it is refused immediately.',
  throttle: 'Sends fewer requests to a target that refuses many of them.',
  'throttle.k': 'Sends about `k` requests for each request that the target accepts, and refuses the others.',
  'throttle.window': 'Only the requests of this last period are counted.',
  hedge: 'Starts a second attempt when the first is slow, and uses the answer that arrives first.',
  'hedge.extraLoad':
    'How many hedges (second attempts) may be sent, as a share of the calls, from 0 to 1. Without `percentile` and `after` it also sets the delay: 0.02 sends the hedge at p98.',
  'hedge.percentile':
    'Sends the hedge when the first attempt has taken longer than this percentile (0 to 1) of all attempts.',
  'hedge.after': 'Sends the hedge when the first attempt has taken this long.',
  choice:
    'Chooses one of the `targets` of a run for each attempt. A target that fails more than the others is avoided for a while.',
  'choice.consecutive':
    'After this many failures in a row, a target is ejected (not chosen), unless most other targets fail too.',
  'choice.ejectFor': 'How long the first ejection lasts, and how long an ejection can last at most.',
  cache:
    'Caches results by the `cacheKey` of a run. Concurrent runs with the same key share one call and its result.',
  'cache.fresh': 'A result is used instead of a call until it is this old.',
  'cache.staleIfError': 'For this time after `fresh`, an old result is returned if the call fails.',
  'cache.entriesMax': 'The most results in the cache. The least recently used result is removed first.',
  fallback: 'Returns another result when the work has failed.',
  'fallback.to':
    'The result instead of the failure: a value, a function that gets the failure, or a list of these. In a list, the first item that does not throw gives the result. Required.',
  'fallback.reserve': 'How much of the patience is reserved for the functions in `to`.',
  mode: '`enforce`: the policy acts. `observe`: each operation is called once, and the policy only counts what it would have done.',
  'mode.enforce':
    'The share of the runs, from 0 to 1, on which the policy acts. It only observes the others.',
};

/**
 * What each field of a policy document means, for JSON Schema and the docs. `npm run options` writes this file, from the
 * comments of `PolicySpec`. It is a separate file, so that bundles can leave it out.
 */
export const fieldNotes: Readonly<Record<string, string>> = {
  name: 'The name of this policy in lists, notices and stories. Use each name for only one policy in a process.',
  patience: 'The time limit for everything, waits and retries included.',
  attempts: 'The most attempts, the first included. `unlimited` needs an explicit `patience`.',
  backoff: 'The waits between attempts. `false`: no waits. A function returns the ms itself.',
  'backoff.strategy': 'How waits grow from one attempt to the next.',
  'backoff.base': 'The first wait, before jitter. After a throttled attempt it is at least 1 s.',
  'backoff.factor': 'The growth factor of `exponential` from wait to wait, or the exponent of `polynomial`.',
  'backoff.cap': 'The longest wait, except where a server asks for more time.',
  'backoff.jitter':
    'The random part of a wait. `full`: the whole wait. `equal`: half of the wait. `decorrelated`: a random wait between the base and three times the previous wait. A number from 0 to 1: this share of the wait.',
  'backoff.jitter.plusMinus': 'Each wait is moved by up to this time in either direction.',
  retryOn:
    'Which failures are worth another attempt besides those of `network` and `http`: names of packs, packs, or functions that classify an outcome.',
  retryOnly:
    'Like `retryOn`, but replaces `network` and `http`: only these failures and errors with a mark are tried again.',
  neverOn: 'Classes of errors that are never retried, whatever the packs say.',
  respectServer: 'Whether hints of a server on when to try again are followed.',
  'respectServer.cap': 'If a server asks for a longer wait than this, the work ends.',
  attemptTimeout:
    'How long one attempt may take. `auto`: three times the measured p99.9, and at least six times the median. With fewer than 1,000 measured answers, `auto` is an equal share of the patience, or more if that share seems too short. `split`: an equal share of the patience that is left. `none`: all the patience that is left.',
  budget: 'Limits the retries that a caller adds to its own traffic.',
  'budget.ratio':
    'How many tokens a success adds. A retry that fails takes one token, so 0.1 allows one failing retry for ten successes.',
  'budget.window':
    'The bucket holds at most `ratio` × the calls made in this time. It always has room for one token, and for more while retries succeed.',
  breaker: 'Stops calling a target that is failing, and probes it until it succeeds again.',
  'breaker.window': 'Which calls are counted: the calls of this time, or a number of calls.',
  'breaker.window.calls': 'Counts this number of calls, however old they are.',
  'breaker.minimum': 'With fewer calls than this in the window, no ratio opens the breaker.',
  'breaker.failureRatio': 'The share of failed calls, from 0 to 1, that opens the breaker.',
  'breaker.consecutive':
    'This many failures in a row open the breaker, whatever the ratio. Heavy traffic needs more. 0: never.',
  'breaker.slow': 'Whether slow calls open the breaker as well.',
  'breaker.slow.over':
    'A call that takes longer than this is slow. `auto`: 10 times the median of the target, and more than a second. `auto` needs an `attemptTimeout` that learns.',
  'breaker.slow.ratio': 'The share of slow calls, from 0 to 1, that opens the breaker.',
  'breaker.openFor':
    'The shortest and the longest time that the breaker stays open. A longer outage means a longer time. Jitter shortens the time by at most half.',
  'breaker.probes': 'The most probes in flight, and the successes in a row that close the breaker.',
  'breaker.whenOpen':
    '`stop` refuses calls immediately. `wait` waits until the breaker admits calls again, if patience allows. With unlimited attempts `wait` is the default.',
  bulkhead: 'Limits the attempts in flight at a target.',
  'bulkhead.concurrent': 'The most attempts in flight.',
  'bulkhead.queue':
    'The most attempts that wait for a permit, ordered by priority. Further attempts are refused.',
  limiter: 'Limits the rate of attempts at a target.',
  'limiter.rate': 'Attempts per second, minute or hour.',
  'limiter.burst': 'Attempts that may pass together after a time without attempts.',
  'limiter.wait':
    'The longest wait of an attempt for its turn, within patience. 0: no wait, the attempt is refused.',
  throttle: 'Sends fewer requests to a target that accepts fewer.',
  'throttle.k': 'Sends at most `k` requests for each request that the target accepts.',
  'throttle.window': 'How far back requests are counted.',
  hedge: 'Starts a second attempt when the first is slow, and takes the first answer.',
  'hedge.extraLoad':
    'The largest share of extra calls, from 0 to 1. Without `percentile` and `after` it also sets the delay: 0.02 hedges at p98.',
  'hedge.percentile': 'Sends the hedge at this percentile (0 to 1) of the durations of attempts.',
  'hedge.after': 'Sends the hedge after this time.',
  choice: 'Chooses among the `targets` of a run, and ejects outliers for a while.',
  'choice.consecutive':
    'Failures in a row after which a target is ejected, unless most of the others are failing too.',
  'choice.ejectFor': 'The duration of the first ejection, and of the longest ejection.',
  cache:
    'Caches results by the `cacheKey` of a run. Concurrent calls with one key wait for one execution and get its result.',
  'cache.fresh': 'For this time, the cached result is used instead of a call.',
  'cache.staleIfError': 'For this time after `fresh`, a result is served instead of a failure.',
  'cache.entriesMax': 'The most results that are kept; the least recently used is dropped first.',
  fallback: 'Gives another result when the work has failed.',
  'fallback.to':
    'A value, a function of the failure, or a list of these: the first item that does not throw gives the result. Required.',
  'fallback.reserve': 'The part of the patience that is reserved for the functions of the chain.',
  mode: '`enforce` acts. `observe` calls once, and only counts what it would have done.',
  'mode.enforce': 'The share of the work, from 0 to 1, that is enforced; the rest is observed.',
};

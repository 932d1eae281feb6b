/**
 * What each field of a policy document means, by its path: for JSON Schema and the pages about policies. It is apart
 * from the tables so that nobody who only runs policies carries the prose.
 */
export const fieldNotes: Readonly<Record<string, string>> = {
  name: 'What lists, notices and stories call this policy. Each name belongs to one policy of a process.',

  patience: 'How long the customer will wait for everything, waits and retries included.',
  attempts:
    'How often it is tried, the first time included. `unlimited` needs a patience of its own beside it.',
  backoff: 'How long to wait between attempts. `false` waits not at all; a function gives the ms itself.',
  'backoff.strategy': 'How waits grow from one attempt to the next.',
  'backoff.base': 'The first wait, before jitter. After a throttled attempt it is at least 1 s.',
  'backoff.factor': 'The growth of `exponential` from wait to wait, and the exponent of `polynomial`.',
  'backoff.cap': 'No wait is longer, except where a server asks for more time.',
  'backoff.jitter':
    'How much of a wait is left to chance. `full`: all of it, `equal`: half, `decorrelated`: between the base and three times the wait before; or a share from 0 to 1.',
  'backoff.jitter.plusMinus': 'Moves each wait by up to so long in either direction.',
  retryOn:
    'Which failures are worth another attempt besides those of `network` and `http`: names of packs, packs, or functions that classify an outcome.',
  retryOnly:
    'The same instead of `network` and `http`: nothing else is tried again but what is marked by hand.',
  neverOn: 'Classes of errors that are never retried, whatever the packs say.',
  respectServer: 'Whether a server that says when to come back is listened to.',
  'respectServer.cap': 'A server that asks for more than this ends the work.',

  attemptTimeout:
    'How long one attempt may take. `auto`: three times the measured p99.9 and at least six times the median; while fewer than 1,000 answers were measured, an equal share of the patience, which is lifted when it seems too short. `split`: an equal share of the patience that is left. `none`: all of it.',

  budget: 'How many retries a caller may add to its own traffic.',
  'budget.ratio':
    'What a success adds, in tokens; a retry that fails takes one. 0.1 allows one failing retry for ten successes.',
  'budget.window':
    'The bucket holds at most `ratio` of the calls made in this time, but always room for one token, and for more while retries succeed.',

  breaker: 'Stops calling a target that is failing, and probes it until it is well.',
  'breaker.window': 'How far back calls are counted: so long, or so many calls.',
  'breaker.window.calls': 'Counts the last so many calls, however old they are.',
  'breaker.minimum': 'Calls in the window below which no ratio opens it.',
  'breaker.failureRatio': 'The share of failed calls that opens it.',
  'breaker.consecutive':
    'Failures in a row that open it, whatever the ratio, and more of them in heavy traffic; 0: none do.',
  'breaker.slow': 'Whether slow calls open it as well.',
  'breaker.slow.over':
    'A call that takes longer is slow. `auto`: 10 times the median of the target, and more than a second; needs an attempt timeout that learns.',
  'breaker.slow.ratio': 'The share of slow calls that opens it.',
  'breaker.openFor':
    'The shortest and the longest time it stays open. It grows with the outage, and up to half of it is taken off by chance.',
  'breaker.probes':
    'How many probes it has in flight at most, and how many must succeed in a row to close it.',
  'breaker.whenOpen':
    '`stop` refuses at once. `wait` waits for it to reopen, if patience allows; unlimited attempts do unless `stop` is said.',

  bulkhead: 'Caps how many attempts are in flight at a target.',
  'bulkhead.concurrent': 'Attempts in flight at most.',
  'bulkhead.queue': 'So many more wait for a place, the most important first; the others are refused.',

  limiter: 'Caps how many attempts a target gets in a time.',
  'limiter.rate': 'How many attempts in a second, a minute or an hour.',
  'limiter.burst': 'How many may pass at once after a rest.',
  'limiter.wait': 'How long an attempt may wait for its turn, within patience; 0 refuses at once.',

  throttle: 'Sends less to a target that accepts less.',
  'throttle.k': 'Sends at most so many times what the target has been accepting.',
  'throttle.window': 'How far back requests are counted.',

  hedge: 'Starts a second attempt when the first is slow, and takes what answers first.',
  'hedge.extraLoad':
    'The share of extra calls that may be spent; unless said otherwise 0.02 also hedges at p98.',
  'hedge.percentile': 'Hedges at this percentile (0 to 1) of what attempts take.',
  'hedge.after': 'Hedges after so long.',

  choice: 'Chooses among the `targets` of a run, and sends outliers away for a while.',
  'choice.consecutive': 'Failures in a row after which a target is sent away, if the others do better.',
  'choice.ejectFor': 'How long it is sent away at first, and at most.',

  cache: 'Remembers results by the `cacheKey` of a run. Calls for one key at one time share one flight.',
  'cache.fresh': 'For so long a result spares the call.',
  'cache.staleIfError': 'For so long after that, a result is served rather than a failure.',
  'cache.entriesMax': 'How many results are kept; the one used least recently makes way.',

  fallback: 'Answers with something else when the work has failed.',
  'fallback.to':
    'A value, a function of the failure, or a chain of them: the first that does not throw. It must be said.',
  'fallback.reserve': 'Kept back from patience for the functions of the chain.',

  mode: '`observe` calls once and only counts what it would have done; `enforce` does it.',
  'mode.enforce': 'The share of the work for which it is done; the rest is observed.',
};

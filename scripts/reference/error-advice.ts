/** What the sources do not say of an error code: when it comes, where several share a class, and what to do. */
export interface ErrorAdvice {
  /** Instead of the comment of the class. */
  readonly when?: string;
  readonly todo: string;
}

/** Every code has its advice, and a test says which has none. */
export const errorAdvice: Readonly<Record<string, ErrorAdvice>> = {
  HOLDFAST_ASSEMBLY_MISMATCH: { todo: 'Give the new work an id of its own, or send the same input again.' },
  HOLDFAST_ASSEMBLY_PARKED: {
    when: 'The assembly is parked: it waits until a person resumes or cancels it. `result()` rejects with this error, and the process prints it once as a warning if there is no `onParked`.',
    todo: 'Look at the assembly with `holdfast assembly show`, then resume or cancel it. `result({ waitWhileParked: true })` waits for that.',
  },
  HOLDFAST_ASSEMBLY_STATE: {
    todo: 'Read the state with `status()`; what has ended cannot be changed. After `stop`, the assembly continues in the next process that runs its program.',
  },
  HOLDFAST_ASSEMBLY_STOPPED: {
    todo: 'Tell the customer why: the error has the reason. Start new work under a new id.',
  },
  HOLDFAST_ASSEMBLY_UNKNOWN: { todo: 'Check the id and the store.' },
  HOLDFAST_ATTEMPT_TIMEOUT: {
    when: 'One attempt took longer than its limit. It is retried like any temporary failure.',
    todo: 'If it comes often, the target is slow: look at its latency before you raise `attemptTimeout`.',
  },
  HOLDFAST_BREAKER_OPEN: {
    when: 'The breaker of the target is open. Nothing was called.',
    todo: 'Try again after `retryAfterMs`, or answer with less. Repair the target.',
  },
  HOLDFAST_BULKHEAD_FULL: {
    when: 'As many calls run and wait as the bulkhead allows. Nothing was called.',
    todo: 'Answer 503, or do it later. More places help only if the target can do more.',
  },
  HOLDFAST_CLIENT_GONE: { todo: 'Stop working on the request. Nobody reads the response.' },
  HOLDFAST_CONFIG: { todo: 'Correct the lines that the message names.' },
  HOLDFAST_CONFLICT: { todo: 'Nothing: the event is retried and reads the data again.' },
  HOLDFAST_CONFORMANCE: { todo: 'Correct the engine; the message names the promise that it broke.' },
  HOLDFAST_CONSUMER_STOPPED: { todo: 'Let the handler end. The event goes back and is handled elsewhere.' },
  HOLDFAST_CRASHED: { todo: 'Look at the payload and at the memory of the process before you replay it.' },
  HOLDFAST_ENGINE_FULL: { todo: 'Remove what is not needed any more, or raise the limit of the store.' },
  HOLDFAST_ENVOY: {
    when: 'Envoy could not be started, does not answer, or refused what it was told.',
    todo: 'Read the message: it has the words of Envoy. `holdfast gateway check` tells beforehand what Envoy cannot do.',
  },
  HOLDFAST_FEATURE_MISSING: {
    todo: 'Give the engine a store, or choose another: docs/choosing-an-engine.md.',
  },
  HOLDFAST_FETCH_CLOSED: {
    todo: 'Call `close()` only when the process ends, or make a new one with `createFetch()`.',
  },
  HOLDFAST_LEASE_LOST: {
    todo: 'Stop the effect. Another process has the work; make effects with `commit` or with the idempotency key.',
  },
  HOLDFAST_NATS_REFUSED: {
    when: 'The server refused a request.',
    todo: 'Read its words in the message: rights, limits, or a stream with other settings.',
  },
  HOLDFAST_NATS_UNANSWERED: {
    when: 'The server did not answer within `timeout`.',
    todo: 'Repeat the call with the same ids: it may have been done.',
  },
  HOLDFAST_OPTIONS: {
    todo: 'Correct the field that the message names. It is a mistake in the program: do not retry.',
  },
  HOLDFAST_PARKED: {
    when: 'A consumer has parked an event, and nobody listens to its notices. It is printed once for each consumer.',
    todo: '`holdfast dlq ls` lists parked events; `subscribeEvents` hears of each.',
  },
  HOLDFAST_PATIENCE_SPENT: {
    when: 'The patience of the work ended. `cause` has the last real error, if there was one.',
    todo: 'Tell the customer, or do the work later as an event. More patience helps only if the customer has it.',
  },
  HOLDFAST_PAYLOAD_FIELD: { todo: 'Correct the path of the field.' },
  HOLDFAST_POISON: { todo: 'Correct the producer, then edit and replay the event: `holdfast dlq edit`.' },
  HOLDFAST_POSTGRES_FULL: {
    todo: 'Make room on the server, or allow more connections. Then repeat the call.',
  },
  HOLDFAST_POSTGRES_SCHEMA: {
    todo: 'Install the version of the package that fits the schema, or let it make the schema.',
  },
  HOLDFAST_POSTGRES_UNAVAILABLE: { todo: 'Repeat the call with the same ids.' },
  HOLDFAST_PROGRAM_CHANGED: {
    todo: 'Put the changed program beside the old one under a new `version`, then resume.',
  },
  HOLDFAST_RABBITMQ_BLOCKED: {
    when: 'The server takes no messages, because it is short of memory or disk.',
    todo: 'Make room on the server. Consumers go on and empty the queues.',
  },
  HOLDFAST_RABBITMQ_REFUSED: {
    when: 'The server refused a request.',
    todo: 'Read its words in the message: rights, or a queue with other arguments.',
  },
  HOLDFAST_RABBITMQ_UNANSWERED: {
    when: 'The server did not answer within `timeout`.',
    todo: 'Repeat the call with the same ids: it may have been done.',
  },
  HOLDFAST_RATE_LIMITED: {
    when: 'The limiter of the policy has no room within its `wait`. Nothing was called.',
    todo: 'Try again after `retryAfterMs`.',
  },
  HOLDFAST_REBUILD: {
    todo: 'Make room, then call `rebuild` again with the same run: it goes on where it was.',
  },
  HOLDFAST_REQUEST: { todo: 'Correct the request; the response has the status and the sentence.' },
  HOLDFAST_SIGNAL_TIMEOUT: {
    todo: 'Catch it in the program and go on without the signal, or let the assembly compensate.',
  },
  HOLDFAST_SQLITE_BUSY: {
    when: 'Another process kept the file locked for longer than `busyMaxMs`.',
    todo: 'Repeat the call. If it comes often, fewer processes should share the file.',
  },
  HOLDFAST_SQLITE_CLOSED: {
    when: 'The engine was closed.',
    todo: 'Close it last, when nothing uses it any more.',
  },
  HOLDFAST_SQLITE_FAILED: {
    when: 'SQLite failed in another way: `cause` has its error.',
    todo: 'Look at the disk and at the rights of the file.',
  },
  HOLDFAST_SQLITE_FULL: { when: 'The disk is full.', todo: 'Make room. What was stored before is safe.' },
  HOLDFAST_SQLITE_NO_STORE: {
    when: 'The file holds no store, and `mustExist` is true.',
    todo: 'Check the path.',
  },
  HOLDFAST_SQLITE_SCHEMA_TOO_NEW: {
    when: 'A newer version of the package has written the file.',
    todo: 'Install that version.',
  },
  HOLDFAST_SQS_HELD_TOO_LONG: {
    when: 'A handler kept a message for 12 hours, the most that SQS allows.',
    todo: 'Divide the work, or give the engine a store.',
  },
  HOLDFAST_SQS_IN_FLIGHT_FULL: {
    when: 'A queue has 120,000 messages in flight.',
    todo: 'Give the engine a store, which keeps long delays; or handle faster.',
  },
  HOLDFAST_SQS_REFUSED: {
    when: 'SQS refused a request, or cannot do what was asked.',
    todo: 'Read its words in the message: rights, limits, or a queue with other attributes.',
  },
  HOLDFAST_STEP_ABORTED: { todo: 'Let the step end. It runs again elsewhere, or is compensated.' },
  HOLDFAST_STEP_AMBIGUOUS: { todo: 'Give the steps different names, or use `each`.' },
  HOLDFAST_STEP_CHECK: {
    todo: 'Nothing at first: the attempt counts as failed and is retried. If it stays, correct the step or the check.',
  },
  HOLDFAST_STEP_FAILED: {
    todo: 'Catch it in the program, or resume the parked assembly once its cause is repaired.',
  },
  HOLDFAST_THROTTLED: {
    when: 'The target has been refusing most calls, so some are refused here. Nothing was called.',
    todo: 'Send less, or try again later.',
  },
  HOLDFAST_TOO_LARGE: {
    todo: 'Send less in one event or batch, or store large things elsewhere and send their address.',
  },
  HOLDFAST_TOPIC: { todo: 'Declare the topic first; empty it before you change its ordering.' },
  HOLDFAST_TRIAGE_BUSY: {
    when: 'A replay or another operation has the event.',
    todo: 'Wait for the operation, or cancel it.',
  },
  HOLDFAST_TRIAGE_CHANGED: {
    when: 'Somebody has changed the event since it was read.',
    todo: 'Read it again and repeat the change.',
  },
  HOLDFAST_TRIAGE_EMPTY_FILTER: {
    when: 'A filter that names nothing would match everything.',
    todo: 'Name what you mean, or say that you mean all.',
  },
  HOLDFAST_TRIAGE_NOT_UNDOABLE: {
    when: 'The act has no inverse, was undone already, or what it changed has changed since.',
    todo: 'Read the audit log, and repair it by hand.',
  },
  HOLDFAST_TRIAGE_NO_REASON: { when: 'An act of an operator came without who or why.', todo: 'Give both.' },
  HOLDFAST_UNKNOWN_DEPENDENCY: {
    when: 'A consumer depends on a policy that no policy of the process is named after.',
    todo: 'Correct the name in `dependsOn`; without it the consumer does not see that the dependency is down.',
  },
  HOLDFAST_WORKER_GONE: {
    todo: 'Repeat the request. If it comes again, look at the log of the gateway for why workers die.',
  },
  HOLDFAST_WORKER_REFUSED: { todo: 'Read the message: it is what the worker said.' },
};

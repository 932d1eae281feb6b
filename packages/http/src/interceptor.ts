import { ambientContext, OptionsError, type PolicySpec, type Wait } from 'holdfast';
import { anything, callback, list, readTable } from 'holdfast/fields';
import type { Dispatcher } from 'undici';
import { type Answer, type JudgementOptions, judgeOf, status } from './classify-response.ts';
import { Exchange, type ExchangeSettings } from './exchange.ts';
import { type Runner, runnerOf } from './fetch.ts';
import { type Announce, announcesTo } from './holdfast-header.ts';
import { type Idempotency, keyMaker } from './idempotency-key.ts';
import { lasting } from './outgoing-request.ts';
import { isOlder, overHttp1, wrapHandler } from './undici7-handler.ts';

export interface InterceptorOptions extends JudgementOptions<Answer> {
  /** Where the `Idempotency-Key` of requests that are not safe to repeat comes from; `off` unless said. */
  readonly idempotency?: Idempotency | undefined;
  /** Whom to send the `Holdfast` header: all, none, or a list of origins. Unless said, all, where there is something inherited. */
  readonly announce?: Announce | undefined;
  /** Told before each wait. */
  readonly onWait?: ((wait: Wait) => void) | undefined;
}

const fields = {
  idempotency: anything<Idempotency>(),
  statuses: list(status),
  classify: callback<NonNullable<InterceptorOptions['classify']>>(),
  announce: anything<Announce>(),
  onWait: callback<NonNullable<InterceptorOptions['onWait']>>(),
};

/**
 * Retries for every request through a dispatcher: `agent.compose(retryInterceptor(policy))`. It drives the policy's machines
 * itself, in the callbacks of undici: a success costs no promise, no signal and no copy of anything.
 */
export function retryInterceptor(
  given: Runner | PolicySpec = {},
  said: InterceptorOptions = {},
): Dispatcher.DispatcherComposeInterceptor {
  const policy = runnerOf(given);
  const options = readTable(fields, said);
  const settings = {
    policy,
    makeKey: keyMaker(options.idempotency),
    announces: announcesWhen(options.announce),
    trustsStatus: !options.classify && !options.statuses,
    judges: [judgeOf(options, false), judgeOf(options, true)] as const,
    onWait: options.onWait,
  };
  refuseLayers(policy);

  return (dispatch) =>
    function retrying(request, handler) {
      if (isOlder(handler)) return retrying(overHttp1(request), wrapHandler(handler));
      // A tunnel is not an exchange of messages.
      if (request.upgrade || request.method === 'CONNECT') return dispatch(request, handler);
      new Exchange(settings, dispatch, lasting(request), handler, ambientContext()).begin();
      return true;
    };
}

/** Unless it is said, to everybody, but only what was inherited: below a client of others, a header of ours is noise. */
function announcesWhen(said: Announce | undefined): ExchangeSettings['announces'] {
  if (said === undefined) return (_origin, around) => around !== undefined;
  return announcesTo(said, undefined);
}

/** A fallback's or a cache's value is not a response that undici could pass on; and what is only observed is not driven. */
function refuseLayers({ plan }: Runner): void {
  if (plan.layers.length === 0) return;
  throw new OptionsError(
    'policy',
    plan.name ?? 'a policy',
    'no fallback, no cache and mode enforce for an interceptor',
  );
}

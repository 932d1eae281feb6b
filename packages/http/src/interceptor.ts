import { ambientContext, OptionsError, type PolicySpec, type Wait } from 'holdfast';
import { anything, callback, list, readTable } from 'holdfast/fields';
import type { Dispatcher } from 'undici';
import {
  type ClassifyOptions,
  type ResponseHead,
  responseClassifier,
  statusField,
} from './classify-response.ts';
import { type Runner, runnerOf } from './fetch.ts';
import { type Announce, announceFilter } from './holdfast-header.ts';
import { type Idempotency, keyMaker } from './idempotency-key.ts';
import { InterceptedRequest, type InterceptorSettings } from './intercepted-request.ts';
import { withReusableHeaders } from './outgoing-request.ts';
import { isUndici7Handler, overHttp1, wrapHandler } from './undici7-handler.ts';

export interface InterceptorOptions extends ClassifyOptions<ResponseHead> {
  /** Where the `Idempotency-Key` of requests that are not safe to repeat comes from; `off` by default. */
  readonly idempotency?: Idempotency | undefined;
  /** Which origins get the `Holdfast` header. By default all, but only for requests inside an ambient context. */
  readonly announce?: Announce | undefined;
  /** Called before each backoff. */
  readonly onWait?: ((wait: Wait) => void) | undefined;
}

const fields = {
  idempotency: anything<Idempotency>(),
  statuses: list(statusField),
  classify: callback<NonNullable<InterceptorOptions['classify']>>(),
  announce: anything<Announce>(),
  onWait: callback<NonNullable<InterceptorOptions['onWait']>>(),
};

/**
 * Retries every request of a dispatcher: `agent.compose(retryInterceptor(policy))`. It drives the policy's machine in the
 * callbacks of undici, so that a success needs no promise, no signal and no copy.
 */
export function retryInterceptor(
  given: Runner | PolicySpec = {},
  spec: InterceptorOptions = {},
): Dispatcher.DispatcherComposeInterceptor {
  const policy = runnerOf(given);
  const options = readTable(fields, spec);
  const settings: InterceptorSettings = {
    policy,
    makeKey: keyMaker(options.idempotency),
    announces: announceRule(options.announce),
    trustsStatus: !options.classify && !options.statuses,
    classifiers: [responseClassifier(options, false), responseClassifier(options, true)],
    onWait: options.onWait,
  };
  assertNoLayers(policy);

  return (dispatch) =>
    function retrying(request, handler) {
      if (isUndici7Handler(handler)) return retrying(overHttp1(request), wrapHandler(handler));
      // A tunnel or an upgraded connection has no response that could be retried.
      if (request.upgrade || request.method === 'CONNECT') return dispatch(request, handler);
      new InterceptedRequest(
        settings,
        dispatch,
        withReusableHeaders(request),
        handler,
        ambientContext(),
      ).begin();
      return true;
    };
}

/** By default only inside an ambient context, to pass on what is inherited: below other clients the header is noise. */
function announceRule(announce: Announce | undefined): InterceptorSettings['announces'] {
  if (announce === undefined) return (_origin, ambient) => ambient !== undefined;
  return announceFilter(announce, undefined);
}

/** undici cannot pass on the value of a fallback or a cache, and with `mode: observe` no machine drives the request. */
function assertNoLayers({ plan }: Runner): void {
  if (plan.layers.length === 0) return;
  throw new OptionsError(
    'policy',
    plan.name ?? 'a policy',
    'no fallback, no cache and mode enforce for an interceptor',
  );
}

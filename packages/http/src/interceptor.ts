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
  /** How requests that are not safe to repeat, such as POST, get an `Idempotency-Key`; `off` by default. */
  readonly idempotency?: Idempotency | undefined;
  /**
   * Which origins get the `Holdfast` request header. The default is all origins, but only for requests that are sent
   * while an event or a request is being handled (inside an ambient context).
   */
  readonly announce?: Announce | undefined;
  /** Called before each wait for a retry. */
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
 * Makes an interceptor that retries the requests of a dispatcher: `agent.compose(retryInterceptor(policy))`. The
 * policy's state machine runs inside undici's callbacks, so a success needs no promise, no AbortSignal and no copy.
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

/**
 * Decides which requests get the `Holdfast` header. By default only requests that are sent while an event or a request
 * is being handled get the header, which passes on the deadline and the priority of that event or request. Other
 * requests have nothing to pass on.
 */
function announceRule(announce: Announce | undefined): InterceptorSettings['announces'] {
  if (announce === undefined) return (_origin, ambient) => ambient !== undefined;
  return announceFilter(announce, undefined);
}

/**
 * Throws for policies that an interceptor cannot run. It cannot return the value of a fallback or a cache as a
 * response, and with `mode: observe` the policy does not control the request.
 */
function assertNoLayers({ plan }: Runner): void {
  if (plan.layers.length === 0) return;
  throw new OptionsError(
    'policy',
    plan.name ?? 'a policy',
    'no fallback, no cache and mode enforce for an interceptor',
  );
}

import { ambientContext, OptionsError, type PolicySpec, type Wait } from 'holdfast';
import { anything, callback, list, readTable } from 'holdfast/fields';
import type { Dispatcher } from 'undici';
import {
  type ClassifyOptions,
  type ResponseHead,
  responseClassifier,
  statusField,
} from './classify-response.ts';
import { type GivenRunner, type Runner, runnerOf } from './fetch.ts';
import { type Announce, announceFilter } from './holdfast-header.ts';
import { type Idempotency, keyMaker } from './idempotency-key.ts';
import { InterceptedRequest, type InterceptorSettings } from './intercepted-request.ts';
import { withReusableHeaders } from './outgoing-request.ts';
import { isUndici7Handler, overHttp1, wrapHandler } from './undici7-handler.ts';

/** The options of `retryInterceptor`. */
export interface InterceptorOptions extends ClassifyOptions<ResponseHead> {
  /**
   * How methods such as POST get an `Idempotency-Key`, so that they can be retried. `derive`: from the key of the
   * request or event that is being handled. `auto`: derived if possible, otherwise random. Default: `off`.
   */
  readonly idempotency?: Idempotency | undefined;
  /**
   * Which origins get the `Holdfast` request header. Default: all, but only while an event or a request is being
   * handled.
   */
  readonly announce?: Announce | undefined;
  /** Called before each wait for a retry. Default: none. */
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
 * Creates an undici interceptor that retries requests: `agent.compose(retryInterceptor(policy))`. It runs
 * inside of undici's callbacks, so a successful request creates no promise.
 */
export function retryInterceptor(
  given: GivenRunner | PolicySpec = {},
  spec: InterceptorOptions = {},
): Dispatcher.DispatcherComposeInterceptor {
  const policy = runnerOf(given, fields, 'the second argument');
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
      // A tunnel or an upgraded connection cannot be retried.
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
 * Returns a function that decides which requests get the `Holdfast` header. By default, these are the
 * requests made while an event or request is being handled. The header passes on the deadline of that event
 * or request.
 */
function announceRule(announce: Announce | undefined): InterceptorSettings['announces'] {
  if (announce === undefined) return (_origin, ambient) => ambient !== undefined;
  return announceFilter(announce, undefined);
}

/** Throws for policies with a fallback, a cache or `mode: observe`, which an interceptor cannot run. */
function assertNoLayers({ plan }: Runner): void {
  if (plan.layers.length === 0) return;
  throw new OptionsError(
    'policy',
    plan.name ?? 'a policy',
    'no fallback, no cache and mode enforce for an interceptor',
  );
}

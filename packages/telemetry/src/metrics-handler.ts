import { OptionsError } from 'holdfast';
import type { Observation } from './observe.ts';
import { contentTypes, type ExpositionFormat, prometheus } from './prometheus.ts';

/** Answers a request for metrics. It works with `node:http`, and with Request and Response. */
export interface MetricsHandler {
  (request: Request): Response | Promise<Response>;
  (request: NodeRequest, response: NodeResponse): void;
}

/** The fields of `IncomingMessage` that are read. */
export interface NodeRequest {
  readonly method?: string | undefined;
  readonly headers: { readonly accept?: string | undefined };
}

/** The methods of `ServerResponse` that are called. */
export interface NodeResponse {
  writeHead(status: number, headers: Record<string, string>): unknown;
  end(body?: string): unknown;
}

/**
 * Creates a handler that answers GET and HEAD with all metrics. It checks no credentials: listen on the
 * loopback interface, or protect it like your other endpoints.
 */
export function metricsHandler(observation: Pick<Observation, 'snapshot' | 'refresh'>): MetricsHandler {
  if (typeof observation?.snapshot !== 'function') {
    const shown = typeof observation === 'object' && observation ? 'an object' : observation;
    throw new OptionsError('metricsHandler.observation', shown, "what observe('all') returns");
  }
  function answer(request: Request | NodeRequest, response: NodeResponse | undefined): Response | undefined {
    return send(request, response, safely(observation, request.method, acceptOf(request)));
  }

  function send(
    { method }: Request | NodeRequest,
    response: NodeResponse | undefined,
    { status, headers, body: text }: Answer,
  ): Response | undefined {
    const body = method === 'HEAD' ? undefined : text;
    if (!response) return new Response(body ?? null, { status, headers });
    response.writeHead(status, headers);
    response.end(body);
    return undefined;
  }

  function handle(request: Request): Response | Promise<Response>;
  function handle(request: NodeRequest, response: NodeResponse): void;
  function handle(request: Request | NodeRequest, response?: NodeResponse) {
    const refreshed = observation.refresh?.();
    return refreshed
      ? refreshed.then(
          () => answer(request, response),
          (error: unknown) => send(request, response, apology(error)),
        )
      : answer(request, response);
  }
  return handle as MetricsHandler;
}

function acceptOf({ headers }: Request | NodeRequest): string {
  const accept =
    'get' in headers && typeof headers.get === 'function'
      ? headers.get('accept')
      : (headers as NodeRequest['headers']).accept;
  return accept ?? '';
}

interface Answer {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly body: string;
}

const always = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' };
const plain = { 'content-type': 'text/plain; charset=utf-8' };

/**
 * Calls `answerTo`, and returns an error response if it throws. In a `node:http` server, an uncaught error
 * would end the process.
 */
function safely(...asked: Parameters<typeof answerTo>): Answer {
  try {
    return answerTo(...asked);
  } catch (error) {
    return apology(error);
  }
}

function apology(error: unknown): Answer {
  const why = error instanceof Error ? error.message : String(error);
  return { status: 500, headers: { ...always, ...plain }, body: `Metrics cannot be read: ${why}.\n` };
}

function answerTo(
  observation: Pick<Observation, 'snapshot'>,
  method: string | undefined,
  accept: string,
): Answer {
  if (method !== 'GET' && method !== 'HEAD') {
    const headers = { ...always, ...plain, allow: 'GET, HEAD' };
    return { status: 405, headers, body: 'Metrics can be read with GET and HEAD.\n' };
  }
  const format = preferred(accept);
  const body = prometheus(observation, { format });
  // Set the length here, because Node does not set it in a response to HEAD.
  const length = `${new TextEncoder().encode(body).length}`;
  const headers = {
    ...always,
    'content-type': contentTypes[format],
    'content-length': length,
    vary: 'accept',
  };
  return { status: 200, headers, body };
}

/** Chooses OpenMetrics only if the Accept header names it with at least the weight of plain text. */
function preferred(accept: string): ExpositionFormat {
  const openmetrics = weight(accept, 'application/openmetrics-text');
  return openmetrics > 0 && openmetrics >= weight(accept, 'text/plain') ? 'openmetrics' : 'text';
}

/** Returns the weight (`q`) of a media type in an Accept header; 0 if the header does not name it. */
function weight(accept: string, mediaType: string): number {
  const weights = accept
    .split(',')
    .map((range) => range.split(';').map((part) => part.trim().toLowerCase()))
    .filter(([type]) => type === mediaType)
    .map((parts) => Number(parts.find((part) => part.startsWith('q='))?.slice(2) ?? 1));
  return Math.max(0, ...weights.filter((each) => each <= 1));
}

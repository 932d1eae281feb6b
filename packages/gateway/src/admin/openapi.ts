const json = (schema: object) => ({ 'application/json': { schema } });
const answer = (description: string, schema: object = { type: 'object' }) => ({
  description,
  content: json(schema),
});
const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const number = { type: 'number' };
const text = { type: 'string' };
const parameter = (name: string, description: string) => ({
  name,
  in: 'path',
  required: true,
  description,
  schema: text,
});
const instance = [
  parameter('upstream', 'The name of the upstream.'),
  parameter('instance', 'The name or the URL of the instance, percent-encoded.'),
];
const unauthorized = { 401: { description: 'The token is missing or wrong.' } };
const missing = { 404: { description: 'There is no such thing.' } };

/** The OpenAPI description of the admin API. */
export const openApi = {
  openapi: '3.1.0',
  info: { title: 'Holdfast gateway admin API', version: '1' },
  security: [{ token: [] }],
  paths: {
    '/livez': { get: { summary: 'The process runs.', security: [], responses: { 200: answer('It does.') } } },
    '/readyz': {
      get: {
        summary: 'The gateway takes requests.',
        security: [],
        responses: { 200: answer('It does.'), 503: answer('It is draining.') },
      },
    },
    '/openapi.json': { get: { summary: 'This document.', responses: { 200: answer('OpenAPI 3.1.') } } },
    '/state': {
      get: {
        summary: 'Routes, upstreams, instances, breakers, budgets and protections, for each worker.',
        responses: { 200: answer('The state.', ref('State')), ...unauthorized },
      },
    },
    '/config': {
      get: {
        summary: 'The configuration in force, without secrets.',
        responses: { 200: answer('The configuration.'), ...unauthorized },
      },
    },
    '/metrics': {
      get: {
        summary: 'Prometheus metrics, summed over the workers.',
        responses: {
          200: {
            description: 'Version 0.0.4 of the text format.',
            content: { 'text/plain': { schema: text } },
          },
          ...unauthorized,
        },
      },
    },
    '/stories': {
      get: {
        summary: 'The latest requests that were retried, refused or failed, the newest first.',
        parameters: [
          {
            name: 'count',
            in: 'query',
            schema: { type: 'integer', minimum: 1, maximum: 1000, default: 100 },
          },
        ],
        responses: {
          200: answer('The stories.', {
            type: 'object',
            properties: { stories: { type: 'array', items: ref('Story') } },
          }),
          ...unauthorized,
        },
      },
    },
    '/stories/{id}': {
      get: {
        summary: 'Why one request was retried or failed.',
        parameters: [parameter('id', 'The request id, from the response header x-request-id.')],
        responses: { 200: answer('The story.', ref('Story')), ...missing, ...unauthorized },
      },
    },
    '/breakers': {
      post: {
        summary: 'Forces breakers open or closed, or gives them back.',
        requestBody: {
          required: true,
          content: json({
            type: 'object',
            required: ['policy', 'state'],
            properties: {
              policy: {
                ...text,
                description:
                  'The name of an upstream, or of a policy as in the state: orders, gateway/orders.',
              },
              target: { ...text, description: 'The name of an instance; all of the policy without it.' },
              state: { enum: ['open', 'closed', 'auto'] },
              because: text,
            },
          }),
        },
        responses: {
          200: answer('How many breakers there were.', { type: 'object', properties: { breakers: number } }),
          400: answer('The body is wrong.'),
          ...missing,
          ...unauthorized,
        },
      },
    },
    '/upstreams/{upstream}/instances/{instance}/drain': {
      post: {
        summary:
          'Sends no new requests to an instance. If all instances of an upstream drain, it answers with 503.',
        parameters: instance,
        responses: {
          200: answer('It drains. `serving` is how many instances of the upstream do not.'),
          ...missing,
          ...unauthorized,
        },
      },
    },
    '/upstreams/{upstream}/instances/{instance}/resume': {
      post: {
        summary: 'Sends requests to an instance again.',
        parameters: instance,
        responses: { 200: answer('It gets requests.'), ...missing, ...unauthorized },
      },
    },
    '/reload': {
      post: {
        summary: 'Reads the file again. A file with a mistake changes nothing.',
        responses: {
          200: answer('The new file is in force.', ref('Reload')),
          422: answer('The file was refused, with the place of each mistake.', ref('Reload')),
          ...unauthorized,
        },
      },
    },
    '/restart': {
      post: {
        summary: 'Replaces the workers one by one, without a failed request.',
        responses: {
          200: answer('All workers are new.'),
          409: answer('There is only one process, or a worker could not start.'),
          ...unauthorized,
        },
      },
    },
  },
  components: {
    securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
    schemas: {
      State: {
        type: 'object',
        properties: {
          isDraining: { type: 'boolean' },
          lastReload: { anyOf: [ref('Reload'), { type: 'null' }] },
          workersLost: { ...number, description: 'Processes that ended unexpectedly and were replaced.' },
          workers: { type: 'array', items: ref('Worker') },
        },
      },
      Worker: {
        type: 'object',
        properties: {
          pid: number,
          startedAt: number,
          isDraining: { type: 'boolean' },
          inFlight: number,
          routes: { type: 'array', items: ref('Route') },
          unmatched: ref('Route'),
          upstreams: { type: 'array', items: ref('Upstream') },
          protections: { type: 'array', items: ref('Protection') },
          accessLogDropped: number,
        },
      },
      Route: {
        type: 'object',
        properties: {
          name: text,
          upstream: text,
          requests: number,
          inFlight: number,
          statuses: { type: 'object', additionalProperties: number },
          retries: number,
          refused: number,
          fallbacks: number,
          bytes: number,
          durationSum: number,
          durations: { type: 'array', items: number },
        },
      },
      Upstream: {
        type: 'object',
        properties: {
          name: text,
          insecure: { type: 'boolean' },
          policies: { type: 'array', items: { type: 'object' } },
          instances: { type: 'array', items: ref('Instance') },
        },
      },
      Instance: {
        type: 'object',
        properties: {
          name: text,
          zone: { type: ['string', 'null'] },
          weight: number,
          isHealthy: { type: 'boolean' },
          isDraining: { type: 'boolean' },
          isEjected: { type: 'boolean' },
          inFlight: number,
          breaker: { enum: ['closed', 'open', 'half-open', null] },
          forced: { enum: ['open', 'closed', null] },
          lastCheckError: { type: ['string', 'null'] },
        },
      },
      Protection: {
        type: 'object',
        properties: {
          name: text,
          kind: text,
          refused: number,
          inFlight: { type: ['number', 'null'] },
          queued: { type: ['number', 'null'] },
        },
      },
      Story: {
        type: 'object',
        properties: {
          time: text,
          id: text,
          method: text,
          path: text,
          route: { type: ['string', 'null'] },
          upstream: { type: ['string', 'null'] },
          instance: { type: ['string', 'null'] },
          status: number,
          ms: number,
          attempts: number,
          stop: text,
          says: text,
          log: { type: 'array', items: { type: 'object' } },
        },
      },
      Reload: {
        type: 'object',
        properties: {
          ok: { type: 'boolean' },
          at: number,
          files: { type: 'array', items: text },
          isChanged: { type: 'boolean' },
          error: text,
          problems: { type: 'array', items: { type: 'object' } },
        },
      },
    },
  },
} as const;

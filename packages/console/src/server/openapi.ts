import { z } from 'zod';
import type { Route } from '../api/route.ts';
import { routes } from '../api/routes.ts';
import { problemKinds } from './problem.ts';

const problemSchema = z.object({
  type: z.string(),
  title: z.string(),
  status: z.number(),
  detail: z.string(),
  code: z.string().optional(),
  issues: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
});

/** Describes the API as OpenAPI 3.1, from the same schemas that check the requests. */
export function openApi(version: string): unknown {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const [name, route] of Object.entries(routes)) {
    const [method = '', path = ''] = name.split(' ');
    const at = path.replace(/:(\w+)/g, '{$1}');
    paths[at] = { ...paths[at], [method.toLowerCase()]: operationOf(name, route as Route) };
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Holdfast console', version },
    servers: [{ url: '/api/v1' }],
    paths,
    components: {
      securitySchemes: {
        cookie: { type: 'apiKey', in: 'cookie', name: 'holdfast-console' },
        token: { type: 'http', scheme: 'bearer' },
      },
      schemas: { Problem: schemaOf(problemSchema, 'output') },
      responses: {
        Problem: {
          description: problemKinds()
            .map(({ kind, status, title }) => `${status} ${kind}: ${title}`)
            .join('\n'),
          content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
        },
      },
    },
  };
}

function operationOf(name: string, route: Route): unknown {
  const hasBody = route.body.type !== 'undefined';
  return {
    operationId: name.replace(/[^\w]+/g, '_').replace(/^_|_$/g, ''),
    summary: route.summary,
    'x-role': route.role,
    security: route.role === 'none' ? [] : [{ cookie: [] }, { token: [] }],
    parameters: [...parametersOf(route.path, 'path'), ...parametersOf(route.query, 'query')],
    ...(hasBody && {
      requestBody: {
        required: true,
        content: { 'application/json': { schema: schemaOf(route.body, 'input') } },
      },
    }),
    responses: {
      [route.status]: { description: 'It went well.', content: contentOf(route) },
      default: { $ref: '#/components/responses/Problem' },
    },
  };
}

function contentOf(route: Route): unknown {
  if (route.kind === 'events') return { 'text/event-stream': { schema: { type: 'string' } } };
  if (route.kind === 'file')
    return { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } };
  return { 'application/json': { schema: schemaOf(route.answer, 'output') } };
}

function parametersOf(schema: z.ZodObject, where: 'path' | 'query'): unknown[] {
  const { properties = {}, required = [] } = schemaOf(schema, 'input') as {
    properties?: Record<string, unknown>;
    required?: readonly string[];
  };
  return Object.entries(properties).map(([name, each]) => ({
    name,
    in: where,
    required: where === 'path' || required.includes(name),
    schema: each,
  }));
}

function schemaOf(schema: z.ZodType, io: 'input' | 'output'): unknown {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' }) as Record<
    string,
    unknown
  >;
  return rest;
}

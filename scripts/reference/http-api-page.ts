import { openApi as consoleApi } from '../../packages/console/src/server/openapi.ts';
import { problemKinds } from '../../packages/console/src/server/problem.ts';
import { openApi as gatewayApi } from '../../packages/gateway/src/admin/openapi.ts';
import { code, page, table } from './markdown.ts';

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
}

interface Operation {
  readonly summary?: string;
  readonly description?: string;
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly required?: boolean;
  }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema?: Schema }>> };
  readonly responses: Readonly<Record<string, unknown>>;
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

export function httpApiPage(): string {
  return page(
    'Every route of the HTTP APIs',
    'Both describe themselves in full, with schemas: the console at `/api/v1/openapi.json`, the gateway at `/openapi.json` of its admin address.',
    [
      '## The console',
      'Below `/api/v1`, with `Authorization: Bearer <token>` or the cookie of the page. Acts are POST and want `why` and an `Idempotency-Key`.',
      routesOf(consoleApi('') as Document),
      'Refusals are `application/problem+json` of these kinds:',
      table(
        ['status', 'kind', 'title'],
        problemKinds().map(({ status, kind, title }) => [String(status), code(kind), title]),
      ),
      "## The gateway's admin API",
      'With `Authorization: Bearer <token>`, except for the two probes.',
      routesOf(gatewayApi as unknown as Document),
    ],
  );
}

function routesOf({ paths }: Document): string {
  const rows = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => [
      code(`${method.toUpperCase()} ${path}`),
      operation.summary ?? operation.description ?? '',
      given(operation),
      Object.keys(operation.responses)
        .filter((status) => status !== 'default')
        .join(', '),
    ]),
  );
  return table(['route', 'what it does', 'query and body', 'answers'], rows);
}

/** Names of what can be sent; a question mark after what need not be. */
function given({ parameters = [], requestBody }: Operation): string {
  const query = parameters
    .filter((each) => each.in === 'query')
    .map(({ name, required }) => `${name}${required ? '' : '?'}`);
  const { properties = {}, required = [] } = Object.values(requestBody?.content ?? {})[0]?.schema ?? {};
  const body = Object.keys(properties).map((name) => `${name}${required.includes(name) ? '' : '?'}`);
  return [
    ...(query.length > 0 ? [`query: ${query.map(code).join(', ')}`] : []),
    ...(body.length > 0 ? [`body: ${body.map(code).join(', ')}`] : []),
  ].join('; ');
}

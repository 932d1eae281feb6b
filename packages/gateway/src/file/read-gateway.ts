import { readFileSync } from 'node:fs';
import path from 'node:path';
import {
  ConfigError,
  mistakesIn,
  type Problem,
  parsePolicies,
  readDocument,
  type SourceDocument,
} from '@holdfast/config';
import type { PolicySpec } from 'holdfast';
import { isDocument, readTable, type SettingsOf, type Table } from 'holdfast/fields';
import { bareDurationsIn } from './bare-durations.ts';
import { type Environment, expandVariables } from './environment.ts';
import type { BareDuration, GatewayConfig } from './gateway-config.ts';
import { gatewayFields, serviceFields } from './gateway-file.ts';
import { isService, type ReadService } from './kubernetes.ts';
import { resolveGateway } from './resolve-gateway.ts';

/** The options of `readGatewayFile`. */
export interface ReadOptions {
  /** The values of variables such as `${NAME}` in the file. Default: the environment of the process. */
  readonly environment?: Environment | undefined;
}

/** The options of `parseGateway`. */
export interface ParseOptions extends ReadOptions {
  /**
   * The file name for error messages. Relative paths are resolved from its folder. Default: "gateway.yaml".
   */
  readonly file?: string | undefined;
  /** Reads included files, policies, certificates and keys. Default: from the disk. */
  readonly readFile?: ((file: string) => string) | undefined;
}

/** One of the files of a gateway, checked on its own. */
export interface ReadFile {
  readonly source: SourceDocument;
  readonly settings: Partial<SettingsOf<typeof gatewayFields>>;
  readonly bareDurations: readonly BareDuration[];
  /** The paths of the services within the document. A path is empty if the whole file is one service. */
  readonly servicePaths: readonly string[];
}

const { upstreams, routes, services, policies } = gatewayFields;
const includedFields = { upstreams, routes, services, policies };

const includesMax = 100;

/** Reads and checks a gateway file. Throws a `ConfigError` with the line and column of each error. */
export function readGatewayFile(file: string, options: ReadOptions = {}): GatewayConfig {
  let content: string;
  try {
    content = readFileSync(file, 'utf8');
  } catch (error) {
    throw new ConfigError(file, [{ line: 1, column: 1, path: '', message: cannotRead(error) }]);
  }
  return parseGateway(content, { ...options, file });
}

/** Checks the text of a gateway file. Throws a `ConfigError` with the line and column of each error. */
export function parseGateway(content: string, options: ParseOptions = {}): GatewayConfig {
  const { file = 'gateway.yaml', environment = process.env } = options;
  const readFile = options.readFile ?? ((name: string) => readFileSync(name, 'utf8'));
  const folder = path.dirname(file);
  const main = readOne(content, file, gatewayFields, environment);
  const problems = new Problems();

  // An absolute name stays as it is; otherwise the file would not be found when it is watched.
  const placeOf = (name: string) => (path.isAbsolute(name) ? name : path.join(folder, name));

  function read(field: string, name: string): string | undefined {
    try {
      return readFile(path.resolve(folder, name));
    } catch (error) {
      problems.add(main.source, field, cannotRead(error));
      return undefined;
    }
  }

  const included: ReadFile[] = [];
  const names = main.settings.include ?? [];
  if (names.length > includesMax)
    problems.add(main.source, 'include', `expected at most ${includesMax} files, got ${names.length}`);
  else
    names.forEach((name, index) => {
      const text = read(`include[${index}]`, name);
      if (text !== undefined) included.push(readOne(text, placeOf(name), includedFields, environment));
    });

  const files = [main, ...included];
  const named = new Map<string, PolicySpec>();
  for (const { source, settings } of files) {
    for (const [name, document] of Object.entries(settings.policies ?? {})) {
      if (named.has(name))
        problems.add(source, `policies.${name}`, 'a policy of this name is in another file');
      named.set(name, document);
    }
  }
  const { policyFile } = main.settings;
  const policyText = policyFile === undefined ? undefined : read('policyFile', policyFile);
  if (policyText !== undefined) {
    // Several routes may use one policy, and each route has its own state. So the name is left out.
    for (const [name, { name: _, ...document }] of parsePolicies(policyText, placeOf(policyFile!)))
      if (!named.has(name)) named.set(name, document);
  }

  const config = resolveGateway(files, named, problems, (field, name) => read(field, name));
  problems.throwIfAny();
  const bareDurations = files.flatMap((each) => each.bareDurations);
  return {
    ...config,
    ...(policyFile !== undefined && { files: [...config.files, placeOf(policyFile)] }),
    ...(bareDurations.length > 0 && { bareDurations }),
  };
}

export class Problems {
  readonly #found: { readonly file: string; readonly problem: Problem }[] = [];

  add(source: SourceDocument, at: string, message: string): void {
    this.#found.push({ file: source.file, problem: source.problemAt(at, message) });
  }

  /** A `ConfigError` can name only one file, so it has the problems of the first file. */
  throwIfAny(): void {
    const file = this.#found[0]?.file;
    if (file === undefined) return;
    throw new ConfigError(
      file,
      this.#found.filter((each) => each.file === file).map(({ problem }) => problem),
    );
  }
}

function readOne(content: string, file: string, table: Table, environment: Environment): ReadFile {
  const source = readDocument(content, file);
  const problems = new Problems();
  const complain = (at: string, message: string) => problems.add(source, at, message);
  const data = expandVariables(source.data ?? {}, environment, complain);
  problems.throwIfAny();
  if (!isDocument(data))
    throw new ConfigError(file, [source.problemAt('', 'a gateway file is a map of fields')]);
  if (isService(data)) {
    for (const { path: at, message } of mistakesIn(serviceFields, data)) complain(at, message);
    problems.throwIfAny();
    const service: ReadService = readTable(serviceFields, data);
    return {
      source,
      settings: { services: [service] },
      bareDurations: bareDurationsIn(serviceFields, data, source),
      servicePaths: [''],
    };
  }
  for (const { path: at, message } of mistakesIn(table, data)) complain(at, message);
  problems.throwIfAny();
  const settings = readTable(table, data) as ReadFile['settings'];
  const servicePaths = (settings.services ?? []).map((_, index) => `services[${index}]`);
  return { source, settings, bareDurations: bareDurationsIn(table, data, source), servicePaths };
}

function cannotRead(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code === 'ENOENT' ? 'there is no such file' : `the file cannot be read: ${message}`;
}

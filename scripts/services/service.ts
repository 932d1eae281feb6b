import http from 'node:http';
import { isHeavy, type ServiceName } from './catalog.ts';
import { registryVariable } from './registry.ts';
import {
  findOrStart,
  type Missing,
  type OwnServer,
  type Server,
  type StartOptions,
  startOwn,
} from './start-service.ts';

/**
 * The server that all tests of this run share, started when the first asks. On a build machine (`CI=true`) a missing one is a
 * failure; elsewhere it is a reason to skip, by name: `describe.skipIf(postgres.missing)(titled('…', postgres), …)`.
 */
export async function service(name: ServiceName): Promise<Server | Missing> {
  const registry = process.env[registryVariable];
  if (!registry) return demanded(await findOrStart(name));
  const { answer } = await ask(`${registry}/${name}`);
  return demanded(answer as Server | Missing);
}

/**
 * A server for one test alone, that it may stop and kill. It is never the one that the environment names. A heavy one may have
 * to wait until fewer are running.
 */
export async function ownService(name: ServiceName, options?: StartOptions): Promise<OwnServer | Missing> {
  const registry = process.env[registryVariable];
  if (!registry || !isHeavy(name)) return demanded(await startOwn(name, options));
  const { release } = await ask(`${registry}/own/${name}`);
  try {
    const server = demanded(await startOwn(name, options));
    if (server.missing !== undefined) release();
    else releaseAfterStop(server, release);
    return server;
  } catch (error) {
    release();
    throw error;
  }
}

/** The title of a suite, with the reason where it is skipped. */
export function titled(title: string, { missing }: { readonly missing?: string | undefined }): string {
  return missing === undefined ? title : `${title} (skipped: ${missing})`;
}

function releaseAfterStop(server: OwnServer, release: () => void): void {
  const { stop } = server;
  server.stop = () => stop().finally(release);
}

/** The connection stays open: it tells the registry that we use the server, until `release` or the end of this process. */
function ask(url: string): Promise<{ answer: unknown; release(): void }> {
  return new Promise((resolve, reject) => {
    const request = http.get(`${url}?user=${process.pid}`, { agent: false }, (response) => {
      let line = '';
      response.setEncoding('utf8').on('data', (text) => {
        line += text;
        if (!line.endsWith('\n')) return;
        request.socket?.unref();
        resolve({ answer: JSON.parse(line), release: () => request.destroy() });
      });
      response.on('close', () => reject(new Error(`${url} has no answer (${response.statusCode}).`)));
    });
    request.on('error', reject);
  });
}

function demanded<T extends Server>(answer: T | Missing): T | Missing {
  if (answer.missing !== undefined && process.env.CI === 'true') throw new Error(answer.missing);
  return answer;
}

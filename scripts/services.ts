import { catalog, type ServiceName } from './services/catalog.ts';
import { findOrStart, type OwnServer } from './services/start-service.ts';

/**
 * `npm run services`: starts every server, prints where it is, and keeps it until Ctrl-C. `npm run services -- kafka redis`: only
 * these.
 */

const started: OwnServer[] = [];
const until = Promise.withResolvers<NodeJS.Signals>();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, until.resolve);

for (const name of namesGiven()) {
  const server = await findOrStart(name);
  if (server.missing !== undefined) {
    console.error(`# ${server.missing}`);
    continue;
  }
  if ('stop' in server) started.push(server);
  console.log(`export ${catalog[name].urlVariable}=${server.url}${server.pid ? ` # pid ${server.pid}` : ''}`);
}
console.error('# Ctrl-C stops them.');

// Nothing else keeps this process alive.
const alive = setInterval(() => {}, 2 ** 30);
await until.promise;
clearInterval(alive);
await Promise.all(started.map((server) => server.stop()));

function namesGiven(): ServiceName[] {
  const all = Object.keys(catalog) as ServiceName[];
  const given = process.argv.slice(2);
  const unknown = given.find((name) => !Object.hasOwn(catalog, name));
  if (unknown !== undefined) {
    console.error(`There is no server "${unknown}". There are: ${all.join(', ')}.`);
    process.exit(2);
  }
  return given.length === 0 ? all : (given as ServiceName[]);
}

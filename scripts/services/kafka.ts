import { randomBytes } from 'node:crypto';
import { cp, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { cached } from './cache.ts';
import { freePort } from './free-port.ts';
import { fetchJars, findJava, javaCommand, useClassArchive, writeClassArchive } from './java-server.ts';
import { liveBrokers } from './kafka-requests.ts';
import { jarList } from './maven-jars.ts';
import { runProgram } from './programs.ts';
import type { Place, Plan, Programs, Recipe } from './recipe.ts';

const list = jarList('kafka');

/** One node that is broker and controller. Topics are created by those who need them, never by a typing error. */
export const kafka: Recipe = {
  name: 'kafka',
  urlVariable: 'HOLDFAST_KAFKA_URL',
  debianPackages: ['default-jre-headless', 'maven'],
  isHeavy: true,

  find: () => findJava(list),

  async fetch(found) {
    const { jars, prepared } = await fetchJars(list, found);
    const programs = { ...found, jars };
    const folder = await cached(prepared, async (draft) => {
      await format(programs, draft);
      await writeClassArchive(path.join(draft, 'classes.jsa'), (option, place) =>
        planWith(option, { ...programs, formatted: path.join(draft, 'formatted') }, place),
      );
    });
    const [formatted, archive] = ['formatted', 'classes.jsa'].map((name) => path.join(folder, name));
    return { jars, formatted: formatted!, archive: archive! };
  },

  plan: (programs, place) => planWith(useClassArchive(programs.archive!), programs, place),
};

async function planWith(classOption: string, programs: Programs, place: Place): Promise<Plan> {
  const { folder, port, settings, isMeasured } = place;
  const data = path.join(folder, 'data');
  await cp(programs.formatted!, data, { recursive: true });
  const configFile = path.join(folder, 'server.properties');
  await writeFile(configFile, properties({ ...(await defaults(port, data)), ...settings }));
  const logFile = path.join(folder, 'log4j2.properties');
  await writeFile(logFile, properties(logging));
  const url = `kafka://127.0.0.1:${port}`;
  return {
    url,
    command: javaCommand({
      list,
      programs,
      isMeasured,
      options: [classOption, `-Dlog4j2.configurationFile=${logFile}`],
      main: 'kafka.Kafka',
      parameters: [configFile],
    }),
    stopSignal: 'SIGTERM',
    isReady: () =>
      liveBrokers(url).then(
        (count) => count > 0,
        () => false,
      ),
  };
}

async function defaults(port: number, data: string): Promise<Record<string, string>> {
  const controllerPort = await freePort();
  return {
    'process.roles': 'broker,controller',
    'node.id': '1',
    'controller.listener.names': 'CONTROLLER',
    'controller.quorum.voters': `1@127.0.0.1:${controllerPort}`,
    listeners: `PLAINTEXT://127.0.0.1:${port},CONTROLLER://127.0.0.1:${controllerPort}`,
    'advertised.listeners': `PLAINTEXT://127.0.0.1:${port}`,
    'log.dirs': data,
    'auto.create.topics.enable': 'false',
    // Kafka's own topics: there is one node to keep them.
    'offsets.topic.replication.factor': '1',
    'offsets.topic.num.partitions': '1',
    'transaction.state.log.replication.factor': '1',
    'transaction.state.log.min.isr': '1',
    'transaction.state.log.num.partitions': '1',
    'share.coordinator.state.topic.replication.factor': '1',
    'share.coordinator.state.topic.min.isr': '1',
    'share.coordinator.state.topic.num.partitions': '1',
    'group.initial.rebalance.delay.ms': '0',
    'group.min.session.timeout.ms': '1000',
    // The controller waits so long for a killed broker before it admits the next: 3 s instead of 12 after a crash.
    'broker.session.timeout.ms': '1500',
    'broker.heartbeat.interval.ms': '300',
    'num.network.threads': '2',
    'num.io.threads': '2',
    'log.cleaner.threads': '1',
    'log.cleaner.dedupe.buffer.size': '2097152',
  };
}

const logging = {
  'rootLogger.level': 'warn',
  'rootLogger.appenderRef.console.ref': 'console',
  'appender.console.type': 'Console',
  'appender.console.name': 'console',
  'appender.console.layout.type': 'PatternLayout',
  'appender.console.layout.pattern': '%d %p %c: %m%n',
};

/** An empty data folder, as `kafka-storage.sh format` writes it. Every server starts with a copy. */
async function format(programs: Programs, folder: string): Promise<void> {
  const configFile = path.join(folder, 'format.properties');
  await writeFile(configFile, properties(await defaults(await freePort(), path.join(folder, 'formatted'))));
  const clusterId = randomBytes(16).toString('base64url');
  const parameters = ['format', '-t', clusterId, '-c', configFile];
  await runProgram(javaCommand({ list, programs, main: 'kafka.tools.StorageTool', parameters }), { folder });
}

function properties(values: Readonly<Record<string, string>>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('');
}

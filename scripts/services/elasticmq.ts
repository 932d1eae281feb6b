import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { cached } from './cache.ts';
import { fetchJars, findJava, javaCommand, useClassArchive, writeClassArchive } from './java-server.ts';
import { jarList } from './maven-jars.ts';
import type { Place, Plan, Programs, Recipe } from './recipe.ts';

const list = jarList('elasticmq');

/** Speaks the protocol of Amazon's SQS. It keeps queues and messages on disk, and so takes about 100 messages a second. */
export const elasticmq: Recipe = {
  name: 'elasticmq',
  urlVariable: 'HOLDFAST_ELASTICMQ_URL',
  debianPackages: ['default-jre-headless', 'maven'],
  isHeavy: true,

  find: () => findJava(list),

  async fetch(found) {
    const { jars, prepared } = await fetchJars(list, found);
    const folder = await cached(prepared, (draft) =>
      writeClassArchive(path.join(draft, 'classes.jsa'), (option, place) =>
        planWith(option, { ...found, jars }, place),
      ),
    );
    return { jars, archive: path.join(folder, 'classes.jsa') };
  },

  plan: (programs, place) => planWith(useClassArchive(programs.archive!), programs, place),
};

async function planWith(classOption: string, programs: Programs, place: Place): Promise<Plan> {
  const { folder, port, settings, isMeasured } = place;
  const file = path.join(folder, 'elasticmq.conf');
  const all = {
    'node-address.protocol': 'http',
    'node-address.host': '127.0.0.1',
    'node-address.port': String(port),
    'node-address.context-path': '',
    'rest-sqs.enabled': 'true',
    'rest-sqs.bind-hostname': '127.0.0.1',
    'rest-sqs.bind-port': String(port),
    'rest-sqs.sqs-limits': 'strict',
    'rest-stats.enabled': 'false',
    'queues-storage.enabled': 'true',
    'queues-storage.path': path.join(folder, 'queues.conf'),
    'messages-storage.enabled': 'true',
    // Without the first parameter a crash loses messages that were accepted; without the second an orderly stop hangs.
    'messages-storage.uri': `jdbc:h2:${path.join(folder, 'messages')};WRITE_DELAY=0;DB_CLOSE_ON_EXIT=FALSE`,
    ...settings,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name} = ${JSON.stringify(value)}`);
  await writeFile(file, ['include classpath("application.conf")', ...lines, ''].join('\n'));
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    command: javaCommand({
      list,
      programs,
      isMeasured,
      options: [classOption, `-Dconfig.file=${file}`],
      main: 'org.elasticmq.server.Main',
    }),
    stopSignal: 'SIGTERM',
    isReady: () =>
      fetch(`${url}/?Action=ListQueues`).then(
        (response) => response.ok,
        () => false,
      ),
  };
}

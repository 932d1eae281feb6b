import { setTimeout as pause } from 'node:timers/promises';
import { assemblies } from '@holdfast/assembly';
import type { Journal } from '@holdfast/contracts';
import { orderPrograms } from './order-program.ts';
import { openLog, openPlace, type Place } from './place.ts';

/** Starts and runs orders until it is killed, at a point or by chance, or asked to stop. */
const [json = '', point = '', passes = '1', starts = ''] = process.argv.slice(2);
const place: Place = JSON.parse(json);
const log = openLog(place);
let passesLeft = Number(passes);

function at(passed: string): void {
  if (passed === point && --passesLeft === 0) process.kill(process.pid, 'SIGKILL');
}

/** Dies before a call reaches the store, or after the store has done it and before anyone hears of it. */
function mortal(journal: Journal): Journal {
  return {
    ...journal,
    async record(entries) {
      at('record.before');
      const results = await journal.record(entries);
      at('record.after');
      return results;
    },
    async claim(request) {
      at('claim.before');
      const claimed = await journal.claim(request);
      if (claimed.assemblies.length > 0) at('claim.after');
      return claimed;
    },
  };
}

const engine = await openPlace(place);
const programs = orderPrograms(place, log, at);
const work = assemblies({
  engine: { ...engine, journal: mortal(engine.journal) },
  programs: programs.all,
  concurrency: 20,
  lease: '1s',
  // Here it is not the assemblies that kill.
  deathsMax: 1_000_000,
});
await work.run();
process.send?.('ready');

let isStopping = false;
process.once('message', async () => {
  isStopping = true;
  await work.stop();
  await engine.close();
  process.exit();
});
process.once('disconnect', () => process.exit());

for (let number = 0; starts !== '' && !isStopping; number++) {
  await pause(30);
  if (work.state.leased >= 5) continue;
  const id = `${starts}-${number}`;
  log(`asked ${id}`);
  await work.start(programs.order, { id }, { id });
  log(`accepted ${id}`);
}

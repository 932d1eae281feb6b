import { startGateway } from '../src/index.ts';

/** Runs a gateway from a file as its own process, as a command would. It tells its ports and losses in lines. */
const [file = '', workers = '1'] = process.argv.slice(2);
const gateway = await startGateway(file, {
  workers: Number(workers),
  watch: true,
  signals: true,
  onWorkerLost: (lost) => console.log(JSON.stringify(lost)),
});
console.log(JSON.stringify({ port: gateway.address.port, admin: gateway.adminAddress?.port }));

import { startGateway } from '../src/index.ts';

/** Runs a gateway from a file as its own process, as a command would. It tells its ports in one line. */
const [file = '', workers = '1'] = process.argv.slice(2);
const gateway = await startGateway(file, { workers: Number(workers), watch: true, signals: true });
console.log(JSON.stringify({ port: gateway.address.port, admin: gateway.adminAddress?.port }));

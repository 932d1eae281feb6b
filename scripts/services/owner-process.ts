import { startOwn } from './start-service.ts';

/** For the test: owns a server, and waits to be killed. */
const server = await startOwn('redis');
console.log(JSON.stringify({ ...server, pid: server.missing === undefined ? server.pid : undefined }));
setInterval(() => {}, 2 ** 30);

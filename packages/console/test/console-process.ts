import { openSqlite } from '@holdfast/sqlite';
import { openConsole } from '../src/index.ts';

/** A console in a process of its own, which a test kills: `console-process.ts FILE PORT TOKEN`. */
const [file = '', port = '0', token = ''] = process.argv.slice(2);
const opened = await openConsole({ engine: await openSqlite({ file }), token });
const { link } = await opened.listen({ port: Number(port) });
console.log(link);

import path from 'node:path';
import { endOnSignal, root, show, tool } from './command.ts';

endOnSignal();
const options = process.argv.slice(2);

const build = await show(tool('typescript/bin/tsc', '-b'));
if (build.code !== 0) process.exit(build.code);

// Without the source condition: what a newcomer sees first is what the build made.
const tour = await show([process.execPath, path.join(root, 'examples/tour/src/tour.ts'), ...options]);
process.exitCode = tour.code;

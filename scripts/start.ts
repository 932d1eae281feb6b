import { spawn } from 'node:child_process';
import path from 'node:path';
import { root, script, show } from './command.ts';

/** What can be shown; the first unless another is named. */
const shows: Record<string, string> = {
  shop: 'examples/orders/src/system.ts',
  orders: 'examples/orders/src/main.ts',
  tour: 'examples/tour/src/tour.ts',
};

const [first = ''] = process.argv.slice(2);
const isNamed = Object.hasOwn(shows, first);
const file = shows[isNamed ? first : 'shop']!;
if (!isNamed && first !== '' && !first.startsWith('-')) {
  console.error(`There is no "${first}" to show. There are: ${Object.keys(shows).join(', ')}.`);
  process.exit(2);
}

const build = await show(script('scripts/build.ts'));
if (build.code !== 0) process.exit(build.code);

// Without the source condition: what a newcomer sees first is what the build made.
const child = spawn(process.execPath, [path.join(root, file), ...process.argv.slice(isNamed ? 3 : 2)], {
  cwd: root,
  stdio: 'inherit',
});
// The child finishes its events before it ends, so we wait for it. The terminal sends Ctrl-C to the child, too.
process.on('SIGINT', () => {
  if (!process.stdin.isTTY) child.kill('SIGINT');
});
process.on('SIGTERM', () => child.kill('SIGTERM'));
process.on('SIGHUP', () => child.kill('SIGTERM'));
child.on('exit', (code, signal) => {
  process.exitCode = signal === null ? (code ?? 1) : 1;
});

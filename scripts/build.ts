import { existsSync, globSync, rmSync } from 'node:fs';
import path from 'node:path';
import { buildPage } from './build-page.ts';
import { buildSite } from './build-site.ts';
import { endOnSignal, root, show, tool } from './command.ts';

endOnSignal();
removeStale();
const { code } = await show(tool('typescript/bin/tsc', '-b'));
process.exitCode = code;
if (code === 0) {
  await buildPage();
  await buildSite();
}

/** What a file that is gone has left in `dist` would be published: the compiler only ever adds. */
function removeStale(): void {
  for (const built of globSync('{packages,engines}/*/dist/**/*.{js,d.ts,js.map,d.ts.map}', { cwd: root })) {
    // The page of the console and its help are bundled: their files have no source of the same name.
    if (/\/dist\/(page|help)\//.test(built)) continue;
    const source = built.replace('/dist/', '/src/').replace(/(\.d\.ts|\.js)(\.map)?$/, '.ts');
    if (!existsSync(path.join(root, source))) rmSync(path.join(root, built));
  }
}

import path from 'node:path';
import { defineConfig, mergeConfig } from 'vitest/config';
import base from './vitest.config.ts';

const source = path.join(import.meta.dirname, 'packages/core/src');

// Mutants live in a copy of the repository whose node_modules lead back to the original, so the package's own
// name must be pointed at the copy or no mutant would ever be seen by a test that uses it.
export default mergeConfig(
  base,
  defineConfig({
    resolve: {
      alias: [
        { find: /^holdfast$/, replacement: `${source}/index.ts` },
        { find: /^holdfast\/(ambient|explain)$/, replacement: `${source}/$1.ts` },
        { find: /^holdfast\/(testing|lint)$/, replacement: `${source}/$1/index.ts` },
      ],
    },
    test: { include: ['packages/core/test/**/*.test.ts'] },
  }),
);

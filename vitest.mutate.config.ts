import path from 'node:path';
import { defineConfig } from 'vitest/config';
import base from './vitest.config.ts';

const source = path.join(import.meta.dirname, 'packages/core/src');

// Mutants live in a copy of the repository whose node_modules lead back to the original, so the package's own
// name must be pointed at the copy or no mutant would ever be seen by a test that uses it.
export default defineConfig({
  ...base,
  resolve: {
    ...base.resolve,
    alias: [
      { find: /^holdfast$/, replacement: `${source}/index.ts` },
      { find: /^holdfast\/(\w+)$/, replacement: `${source}/$1.ts` },
    ],
  },
  // Not those that compare pages with source files: Stryker writes a line into every copy.
  test: { ...base.test, include: ['packages/core/test/**/*.test.ts'], exclude: ['**/docs.test.ts'] },
});

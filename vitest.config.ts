import { defineConfig } from 'vitest/config';

// Packages are resolved to their TypeScript source, so tests never run against a stale build.
const conditions = ['holdfast-source'];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: [
      '{packages,engines,examples}/*/{src,test}/**/*.test.ts',
      'bench/**/*.test.ts',
      'scripts/**/*.test.ts',
    ],
    // Servers that tests ask for are started once a run, and stopped after it.
    globalSetup: 'scripts/services/vitest-setup.ts',
    // A test that reaches for the network or a real wait shows up as slow long before this.
    testTimeout: 20_000,
    restoreMocks: true,
  },
});

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
    // Many files wait for servers and clocks: two at a time, also where Vitest would leave one core free.
    maxWorkers: 2,
    // Servers that tests ask for are started once a run, and stopped after it.
    globalSetup: 'scripts/services/vitest-setup.ts',
    // A test that reaches for the network or a real wait shows up as slow long before this.
    testTimeout: 20_000,
    // A build machine is shared, and servers are real: what fails there is tried once more, and the report says which.
    retry: process.env.CI === 'true' ? 1 : 0,
    restoreMocks: true,
    // Consumers of tests park events on purpose, and most have no listener.
    execArgv: ['--disable-warning=HOLDFAST_PARKED'],
  },
});

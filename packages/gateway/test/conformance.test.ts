import { describe, test } from 'vitest';
import { titled } from '../../../scripts/services/service.ts';
import { dataPlanes, whySkipped } from './conformance/data-planes.ts';
import { lifetimeChecks } from './conformance/lifetime-checks.ts';
import { protectionChecks } from './conformance/protection-checks.ts';
import { routingChecks } from './conformance/routing-checks.ts';
import { upstreamChecks } from './conformance/upstream-checks.ts';

const checks = [...routingChecks, ...upstreamChecks, ...protectionChecks, ...lifetimeChecks];

describe.for(dataPlanes)('on the data plane', (plane) => {
  describe.skipIf(plane.missing !== undefined)(titled(plane.name, plane), () => {
    for (const { name, needs, exactly = [], run } of checks) {
      const missing = whySkipped(plane, needs, exactly);
      test.skipIf(missing !== undefined)(titled(name, { missing }), () => run(plane));
    }
  });
});

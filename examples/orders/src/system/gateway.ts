import { mkdtempSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { type Gateway, startGateway } from '@holdfast/gateway';

/** The file of the gateway: every protection for a service that has none of its own. */
function gatewayFile(urls: readonly string[]): string {
  return `listen: 127.0.0.1:0
admin: { port: 0 }
upstreams:
  payment:
    instances: [${urls.join(', ')}]
    circuitBreaker: { failureThreshold: 10, timeout: 3s, halfOpenRequests: 3 }
    bulkhead: { maxConcurrentRequests: 100, maxQueuedRequests: 50 }
    healthCheck: { path: /health, interval: 1s, timeout: 500ms, unhealthyThreshold: 2, healthyThreshold: 1 }
    retry: { attempts: 3, patience: 2s }
routes:
  - name: payment
    match: /
    upstream: payment
    rateLimiting: { requestsPerSecond: 1000, burstSize: 2000 }
`;
}

export interface RunningGateway {
  readonly url: string;
  readonly gateway: Gateway;
  /** Asks the admin API, as the console does. */
  ask(method: 'GET' | 'POST', path: string, body?: unknown): Promise<{ status: number; body: unknown }>;
}

/** Starts a gateway in front of the payment service, in this process. */
export async function startShopGateway(urls: readonly string[]): Promise<RunningGateway> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'holdfast-shop-'));
  const file = path.join(folder, 'gateway.yaml');
  writeFileSync(file, gatewayFile(urls));
  const gateway = await startGateway(file);
  const admin = `http://127.0.0.1:${gateway.adminAddress!.port}`;
  return {
    url: `http://127.0.0.1:${gateway.address.port}`,
    gateway,
    async ask(method, where, body) {
      const response = await fetch(admin + where, {
        method,
        headers: { authorization: `Bearer ${gateway.adminToken}`, 'content-type': 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      return { status: response.status, body: await response.json() };
    },
  };
}

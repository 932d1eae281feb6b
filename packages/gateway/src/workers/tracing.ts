import type { GatewayProcess } from '../proxy/gateway-process.ts';

/**
 * Reports spans to the OpenTelemetry API that the process has loaded. The returned function stops the
 * reports.
 */
export async function startTracing(gateway: GatewayProcess): Promise<() => void> {
  const { observeWithOpenTelemetry } = await import('@holdfast/telemetry/otel');
  const policies = [...gateway.upstreams.values()].flatMap((upstream) =>
    upstream.policies.map(({ name }) => name),
  );
  return observeWithOpenTelemetry({ policies, meter: false });
}

import type { GatewayProcess } from '../proxy/gateway-process.ts';

/**
 * Reports spans of the gateway's policies to the OpenTelemetry API that is loaded in the process. Returns a
 * function that stops it.
 */
export async function startTracing(gateway: GatewayProcess): Promise<() => void> {
  const { observeWithOpenTelemetry } = await import('@holdfast/telemetry/otel');
  const policies = [...gateway.upstreams.values()].flatMap((upstream) =>
    upstream.policies.map(({ name }) => name),
  );
  return observeWithOpenTelemetry({ policies, meter: false });
}

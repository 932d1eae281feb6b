import { envoy } from '../../../../scripts/services/envoy.ts';
import { envoyFeatures, type FeatureName, type Features, nodeFeatures } from '../../src/index.ts';
import { start } from '../gateways.ts';

/** What runs a gateway file under the checks. */
export interface DataPlane {
  readonly name: string;
  readonly features: Features;
  /** Why it cannot run on this machine. */
  readonly missing?: string | undefined;
  start(yaml: string): ReturnType<typeof start>;
}

const program = await envoyProgram();

export const dataPlanes: readonly DataPlane[] = [
  { name: 'node', features: nodeFeatures, start: (yaml) => start(yaml) },
  {
    name: 'envoy',
    features: envoyFeatures,
    missing: 'missing' in program ? program.missing : undefined,
    start: (yaml) =>
      start(yaml, {
        dataPlane: 'envoy',
        envoy: { program: 'path' in program ? program.path : undefined },
      }),
  },
];

/** Why a data plane does not run a check; undefined: it runs it. */
export function whySkipped(
  { features }: DataPlane,
  needs: readonly FeatureName[],
  exactly: readonly FeatureName[],
): string | undefined {
  for (const name of [...needs, ...exactly]) {
    const feature = features[name];
    if (feature !== true && 'missing' in feature) return `${name}: ${feature.missing}`;
  }
  for (const name of exactly) {
    const feature = features[name];
    if (feature !== true && 'approximated' in feature) return `${name}: ${feature.approximated}`;
  }
  return undefined;
}

/** The program that tests and benchmarks share, fetched once. On a build machine it must be there. */
export async function envoyProgram(): Promise<{ readonly path: string } | { readonly missing: string }> {
  const found = envoy.find();
  try {
    if (found.missing !== undefined) throw new Error(found.missing);
    const { envoy: path } = await envoy.fetch!(found.programs);
    return { path: path! };
  } catch (error) {
    if (process.env.CI === 'true') throw error;
    return { missing: (error as Error).message.split('\n')[0]! };
  }
}

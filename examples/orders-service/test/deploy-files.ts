import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { root } from '../../../scripts/command.ts';

/** What a file says about one container of ours, in the same words for both files. */
export interface Container {
  readonly command: readonly string[];
  /** Values that are secrets are `undefined`. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly probes: readonly Probe[];
}

export interface Probe {
  readonly port: number;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface ComposeService {
  readonly image: string;
  readonly build?: { context: string; dockerfile: string };
  readonly command?: string[];
  readonly user: string;
  readonly read_only: boolean;
  readonly cap_drop: string[];
  readonly environment: Record<string, string>;
  readonly healthcheck: { test: string[] };
  readonly depends_on?: Record<string, { condition: string }>;
  readonly stop_grace_period: string;
  readonly mem_limit: string;
}

interface HttpProbe {
  readonly httpGet?: { path: string; port: string; httpHeaders?: { name: string; value: string }[] };
}

export interface KubernetesContainer {
  readonly name: string;
  readonly command?: string[];
  readonly env: {
    name: string;
    value?: string;
    valueFrom?: { secretKeyRef: { name: string; key: string } };
  }[];
  readonly ports: { name: string; containerPort: number }[];
  readonly startupProbe?: HttpProbe;
  readonly livenessProbe: HttpProbe;
  readonly readinessProbe: HttpProbe;
  readonly resources: { requests: object; limits: object };
  readonly securityContext: object;
  readonly volumeMounts: { name: string; mountPath: string }[];
}

export interface KubernetesObject {
  readonly kind: string;
  readonly metadata: { name: string };
  readonly spec: {
    readonly selector?: Record<string, unknown>;
    readonly ports?: { port: number; targetPort: string }[];
    readonly template?: {
      readonly metadata: { labels: Record<string, string> };
      readonly spec: {
        readonly terminationGracePeriodSeconds: number;
        readonly securityContext: object;
        readonly containers: KubernetesContainer[];
        readonly volumes: { name: string }[];
      };
    };
    readonly volumeClaimTemplates?: { metadata: { name: string } }[];
  };
}

export const textOf = (file: string): string => readFileSync(path.join(root, 'deploy', file), 'utf8');

export const compose: Record<string, ComposeService> = parse(textOf('compose.yaml')).services;

export const kubernetes: KubernetesObject[] = parseAllDocuments(textOf('kubernetes.yaml')).map((document) => {
  if (document.errors.length > 0) throw document.errors[0];
  return document.toJS();
});

/** Those of the three that are ours; PostgreSQL has the command of its image. */
export const names = ['orders', 'gateway', 'console'] as const;
export type Name = (typeof names)[number];

export function composeContainer(name: Name): Container {
  const { command = [], environment, healthcheck } = compose[name]!;
  const [, port = '', page = ''] = /127\.0\.0\.1:(\d+)(\/\w*)'/.exec(healthcheck.test.at(-1)!) ?? [];
  const env = Object.entries(environment).map(([key, value]) => [
    key,
    value.includes('${') ? undefined : value,
  ]);
  return {
    command,
    env: Object.fromEntries(env),
    probes: [{ port: Number(port), path: page, headers: {} }],
  };
}

export function kubernetesContainer(name: Name): Container {
  const { command = [], env, ports, ...rest } = podsOf(name).containers[0]!;
  const probes = [rest.startupProbe, rest.livenessProbe, rest.readinessProbe].flatMap((probe) => {
    if (probe?.httpGet === undefined) return [];
    const { path: page, port, httpHeaders = [] } = probe.httpGet;
    const { containerPort } = ports.find((each) => each.name === port)!;
    const headers = Object.fromEntries(httpHeaders.map(({ name: header, value }) => [header, value]));
    return [{ port: containerPort, path: page, headers }];
  });
  return { command, env: Object.fromEntries(env.map(({ name: key, value }) => [key, value])), probes };
}

export function podsOf(name: string) {
  const object = kubernetes.find(
    ({ metadata, spec }) => metadata.name === name && spec.template !== undefined,
  );
  return object!.spec.template!.spec;
}

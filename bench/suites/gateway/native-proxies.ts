import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { envoyConfiguration, parseGateway, writeEnvoyFiles } from '@holdfast/gateway';
import { envoy as envoyRecipe } from '../../../scripts/services/envoy.ts';
import { findPrograms, systemFolders } from '../../../scripts/services/programs.ts';

/** How to run a proxy that is not for Node, with one worker, or why there is none on this machine. */
export type Native = { readonly command: readonly [string, ...string[]] } | { readonly missing: string };

export const natives: Readonly<Record<string, (upstream: string, port: number) => Promise<Native>>> = {
  async nginx(upstream, port) {
    const found = findPrograms(['nginx'], systemFolders);
    if (found.missing !== undefined) return found;
    const folder = newFolder();
    const file = path.join(folder, 'nginx.conf');
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
      .map((name) => `${name}_temp_path ${folder}/${name};`)
      .join(' ');
    writeFileSync(
      file,
      `daemon off; master_process off; pid ${folder}/pid; error_log ${folder}/error.log;
events { worker_connections 1024; }
http {
  access_log off; ${temporary} keepalive_requests 100000000; keepalive_timeout 10m;
  upstream api { server ${new URL(upstream).host}; keepalive 128; keepalive_requests 100000000; }
  server {
    listen 127.0.0.1:${port};
    location / { proxy_pass http://api; proxy_http_version 1.1; proxy_set_header Connection ""; }
  }
}`,
    );
    return { command: [found.programs.nginx!, '-c', file, '-p', folder] };
  },

  async haproxy(upstream, port) {
    const found = findPrograms(['haproxy'], systemFolders);
    if (found.missing !== undefined) return found;
    const file = path.join(newFolder(), 'haproxy.cfg');
    writeFileSync(
      file,
      `global
  nbthread 1
defaults
  mode http
  timeout connect 2s
  timeout client 10m
  timeout server 30s
  http-reuse always
frontend in
  bind 127.0.0.1:${port}
  default_backend api
backend api
  server one ${new URL(upstream).host}
`,
    );
    return { command: [found.programs.haproxy!, '-db', '-f', file] };
  },

  /** The same protections as ours, as far as Envoy has them. */
  async envoy(upstream, port) {
    const found = envoyRecipe.find();
    if (found.missing !== undefined) return found;
    const { envoy } = await envoyRecipe.fetch!(found.programs);
    const folder = newFolder();
    const config = parseGateway(`
listen: { port: ${port}, keepAlive: 10m }
admin: false
upstreams:
  api:
    instances: ["${upstream}"]
    circuitBreaker: true
    retry: { attempts: 3, patience: 5s }
    bulkhead: { maxConcurrentRequests: 128 }
    rateLimiting: { requestsPerSecond: 1000000, burstSize: 1000000, key: client }
routes: [{ upstream: api }]
`);
    await writeEnvoyFiles(folder, envoyConfiguration(config, { folder, adminPort: 0 }), '1');
    const bootstrap = path.join(folder, 'bootstrap.json');
    return {
      command: [
        envoy!,
        ...['-c', bootstrap, '--concurrency', '1', '--disable-hot-restart', '--log-level', 'error'],
      ],
    };
  },
};

function newFolder(): string {
  return mkdtempSync(path.join(tmpdir(), 'holdfast-bench-'));
}

import { statSync } from 'node:fs';
import { ConfigError } from '@holdfast/config';
import { type Clock, OptionsError, Timer } from 'holdfast';
import type { ReloadResult } from '../admin/admin-server.ts';
import type { GatewayConfig } from '../file/gateway-config.ts';
import { type ReadOptions, readGatewayFile } from '../file/read-gateway.ts';

/** How often (ms) the files are checked for changes. Polling works on every file system. */
const watchMs = 500;

export class ConfigSource {
  config: GatewayConfig;
  lastReload: ReloadResult | null = null;
  readonly #file: string | undefined;
  readonly #options: ReadOptions;
  readonly #clock: Clock;
  /** The versions (time, size, inode) of the files when they were last read. */
  #seen = '';
  #timer: Timer | undefined;
  #pending: Promise<ReloadResult> | undefined;

  constructor(source: string | GatewayConfig, options: ReadOptions, clock: Clock) {
    this.#file = typeof source === 'string' ? source : undefined;
    this.#options = options;
    this.#clock = clock;
    this.config = typeof source === 'string' ? readGatewayFile(source, options) : source;
    this.#seen = this.#versions();
  }

  /**
   * Reads the file again, or takes the configuration `given`. If there is an error, nothing changes. Reloads
   * run one after the other.
   */
  reload(
    apply: (config: GatewayConfig) => Promise<void>,
    given: GatewayConfig | undefined,
  ): Promise<ReloadResult> {
    const before = this.#pending ?? Promise.resolve();
    const next = before.then(() => this.#reload(apply, given));
    this.#pending = next;
    return next;
  }

  watch(changed: () => void): void {
    this.unwatch();
    if (this.#file === undefined) return;
    const timer = new Timer(this.#clock, () => {
      timer.setIn(watchMs);
      if (this.#versions() !== this.#seen) changed();
    });
    timer.setIn(watchMs);
    this.#timer = timer;
  }

  unwatch(): void {
    this.#timer?.clear();
  }

  #versions(): string {
    if (this.#file === undefined) return '';
    return this.config.files.map(versionOf).join();
  }

  async #reload(
    apply: (config: GatewayConfig) => Promise<void>,
    given: GatewayConfig | undefined,
  ): Promise<ReloadResult> {
    const at = this.#clock.epochMs();
    this.#seen = this.#versions();
    try {
      const next =
        given ?? (this.#file === undefined ? this.config : readGatewayFile(this.#file, this.#options));
      assertReloadable(this.config, next);
      await apply(next);
      const isMore = next.files.join() !== this.config.files.join();
      this.config = next;
      if (isMore) this.#seen = this.#versions();
      this.lastReload = { ok: true, at, files: next.files };
    } catch (error) {
      const { files } = this.config;
      const problems =
        error instanceof ConfigError
          ? error.problems.map((problem) => ({ file: error.file, ...problem }))
          : undefined;
      this.lastReload = {
        ok: false,
        at,
        files,
        error: (error as Error).message,
        ...(problems && { problems }),
      };
    }
    return this.lastReload;
  }
}

function versionOf(file: string): string {
  try {
    const { mtimeMs, size, ino } = statSync(file);
    return `${mtimeMs} ${size} ${ino}`;
  } catch {
    return 'missing';
  }
}

/** Settings such as the port can not change without a restart. */
function assertReloadable(before: GatewayConfig, next: GatewayConfig): void {
  const fixed = ({
    listen: { tls, trustedProxies: _, ...listen },
    admin,
    workers,
    stores,
  }: GatewayConfig) => ({
    listen: { ...listen, tls: tls !== null },
    admin,
    workers,
    stores,
  });
  const old = fixed(before);
  const now = fixed(next);
  for (const key of Object.keys(old) as (keyof typeof old)[])
    if (JSON.stringify(old[key]) !== JSON.stringify(now[key]))
      throw new OptionsError(key, '(changed)', 'no change: it takes effect only with a restart');
}

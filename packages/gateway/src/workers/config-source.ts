import { readFileSync, statSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { ConfigError, type Problem, readDocument } from '@holdfast/config';
import { type Clock, Timer } from 'holdfast';
import type { ReloadResult } from '../admin/admin-server.ts';
import { lintGateway } from '../explain/lint-gateway.ts';
import type { GatewayConfig } from '../file/gateway-config.ts';
import { type ReadOptions, readGatewayFile } from '../file/read-gateway.ts';

/** How often (ms) the files are checked for changes. Polling works on every file system. */
const watchMs = 500;

export interface SourceOptions extends ReadOptions {
  /** The number of workers that run, if it is not that of the file. */
  readonly workers?: number | undefined;
}

export class ConfigSource {
  config: GatewayConfig;
  lastReload: ReloadResult | null = null;
  readonly #file: string | undefined;
  readonly #options: SourceOptions;
  readonly #clock: Clock;
  /** The files whose changes cause a reload. A refused file is one of them, because it may get corrected. */
  #watched: readonly string[];
  /** The versions (time, size, inode) of the files when they were last read. */
  #seen = '';
  #timer: Timer | undefined;
  #pending: Promise<ReloadResult> | undefined;

  constructor(source: string | GatewayConfig, options: SourceOptions, clock: Clock) {
    this.#file = typeof source === 'string' ? source : undefined;
    this.#options = options;
    this.#clock = clock;
    this.config = typeof source === 'string' ? readGatewayFile(source, options) : source;
    this.#assertSound(this.config);
    this.#watched = this.config.files;
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
    return this.#watched.map(versionOf).join();
  }

  async #reload(
    apply: (config: GatewayConfig) => Promise<void>,
    given: GatewayConfig | undefined,
  ): Promise<ReloadResult> {
    const at = this.#clock.epochMs();
    this.#seen = this.#versions();
    const before = this.config;
    try {
      const next = given ?? (this.#file === undefined ? before : readGatewayFile(this.#file, this.#options));
      this.#assertSound(next);
      this.#assertReloadable(next);
      await apply(next);
      this.config = next;
      this.#watch(next.files);
      this.lastReload = { ok: true, at, files: next.files, isChanged: !isDeepStrictEqual(before, next) };
    } catch (error) {
      const { files } = before;
      const problems =
        error instanceof ConfigError
          ? error.problems.map((problem) => ({ file: error.file, ...problem }))
          : undefined;
      this.#watch([...new Set([...files, ...(problems ?? []).map(({ file }) => file)])]);
      this.lastReload = {
        ok: false,
        at,
        files,
        isChanged: false,
        error: (error as Error).message,
        ...(problems && { problems }),
      };
    }
    return this.lastReload;
  }

  #watch(files: readonly string[]): void {
    const isSame = files.join() === this.#watched.join();
    this.#watched = files;
    if (!isSame) this.#seen = this.#versions();
  }

  /** Findings of severity `error` refuse a start, and a reload. */
  #assertSound(config: GatewayConfig): void {
    const { workers = config.workers } = this.#options;
    const errors = lintGateway({ ...config, workers }).filter(({ severity }) => severity === 'error');
    if (errors.length === 0) return;
    throw new ConfigError(
      this.#fileOf(config),
      errors.map(({ rule, where, found, fix }) =>
        this.#problemAt(fieldOf(rule, where), `${rule} (${where}): ${found}. ${sentence(fix)}`),
      ),
    );
  }

  /** Settings such as the port can not change without a restart. */
  #assertReloadable(next: GatewayConfig): void {
    const old = fixedSettings(this.config);
    const now = fixedSettings(next);
    const changed = (Object.keys(old) as (keyof typeof old)[]).filter(
      (key) => !isDeepStrictEqual(old[key], now[key]),
    );
    if (changed.length === 0) return;
    throw new ConfigError(
      this.#fileOf(next),
      changed.map((key) =>
        this.#problemAt(key, `${key}: the change${fromTo(key, old, now)} takes effect only with a restart`),
      ),
    );
  }

  #fileOf({ files }: GatewayConfig): string {
    return this.#file ?? files[0] ?? 'the configuration';
  }

  #problemAt(path: string, message: string): Problem {
    const nowhere = { line: 1, column: 1, path, message };
    if (this.#file === undefined) return nowhere;
    try {
      return readDocument(readFileSync(this.#file, 'utf8'), this.#file).problemAt(path, message);
    } catch {
      // The file was changed since it was read.
      return nowhere;
    }
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

function fixedSettings({
  listen: { tls, trustedProxies: _, ...listen },
  admin,
  workers,
  stores,
}: GatewayConfig) {
  return { listen: { ...listen, tls: tls !== null }, admin, workers, stores };
}

type Fixed = ReturnType<typeof fixedSettings>;

/** Returns the old and the new address or number. Other settings can contain a token or a password. */
function fromTo(key: keyof Fixed, old: Fixed, now: Fixed): string {
  const shown = ({ [key]: value }: Fixed) => {
    if (key === 'workers') return value === 0 ? 'auto' : `${value as number}`;
    const { host, port } = Object(value) as { host?: string; port?: number };
    return port === undefined ? '' : `${host}:${port}`;
  };
  const [before, after] = [shown(old), shown(now)];
  return before === after || before === '' || after === '' ? '' : ` from ${before} to ${after}`;
}

/** Returns the path of the field that a finding is about; empty: the whole file. */
function fieldOf(rule: string, where: string): string {
  if (rule === 'open-admin') return 'admin';
  const [, name] = /^upstream ([^,]+)/.exec(where) ?? [];
  return name === undefined ? '' : `upstreams.${name}`;
}

function sentence(text: string): string {
  return `${text[0]!.toUpperCase()}${text.slice(1).replace(/\.$/, '')}.`;
}

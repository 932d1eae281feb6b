import { type Clock, type Random, Timer } from 'holdfast';
import type { HealthCheckConfig } from '../file/gateway-config.ts';
import type { Instance } from './instance.ts';

/**
 * Each interval is up to 10 % shorter or longer at random. So several gateways do not check at the same time.
 */
const jitter = 0.1;

export class HealthCheck {
  readonly #instance: Instance;
  readonly #config: HealthCheckConfig;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #changed: () => void;
  readonly #timer: Timer;
  readonly #timeout: Timer;
  #abort: AbortController | undefined;
  #isStopped = false;

  constructor(
    instance: Instance,
    config: HealthCheckConfig,
    clock: Clock,
    random: Random,
    changed: () => void,
  ) {
    this.#instance = instance;
    this.#config = config;
    this.#clock = clock;
    this.#random = random;
    this.#changed = changed;
    this.#timer = new Timer(clock, () => void this.#check());
    this.#timeout = new Timer(clock, () =>
      this.#abort?.abort(new Error(`no answer within ${config.timeoutMs} ms`)),
    );
    // A random delay, so that the instances are not all checked at once.
    this.#timer.setIn(random() * Math.min(1000, config.intervalMs));
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer.clear();
    this.#timeout.clear();
    this.#abort?.abort(new Error('the check was stopped'));
  }

  async #check(): Promise<void> {
    const { path } = this.#config;
    const abort = new AbortController();
    this.#abort = abort;
    this.#timeout.setIn(this.#config.timeoutMs);
    let error: string | undefined;
    try {
      const { statusCode, body } = await this.#instance.pool.request({
        method: 'GET',
        path,
        headers: { 'user-agent': 'holdfast-gateway-health-check' },
        signal: abort.signal,
      });
      await body.dump({ limit: 65_536 });
      if (statusCode < 200 || statusCode >= 400) error = `status ${statusCode}`;
    } catch (thrown) {
      error = (thrown as Error).message || String(thrown);
    }
    this.#timeout.clear();
    if (this.#isStopped) return;
    this.#note(error);
    const { intervalMs } = this.#config;
    this.#timer.setIn(intervalMs * (1 - jitter + this.#random() * 2 * jitter));
  }

  #note(error: string | undefined): void {
    const instance = this.#instance;
    const { healthyThreshold, unhealthyThreshold } = this.#config;
    instance.lastCheckError = error;
    if (error === undefined) {
      instance.passedChecks++;
      instance.failedChecks = 0;
      if (instance.isHealthy || instance.passedChecks < healthyThreshold) return;
      instance.isHealthy = true;
      instance.startedAt = this.#clock.now();
    } else {
      instance.failedChecks++;
      instance.passedChecks = 0;
      if (!instance.isHealthy || instance.failedChecks < unhealthyThreshold) return;
      instance.isHealthy = false;
    }
    this.#changed();
  }
}

import { breakerOf, breakersOf } from 'holdfast';
import type { GatewayConfig } from '../file/gateway-config.ts';
import type { GatewayProcess } from '../proxy/gateway-process.ts';
import type { RequestStory } from './stories.ts';
import { type WorkerState, workerState } from './worker-state.ts';

/** A command to one process of a gateway. Workers get it as a message, so it is plain data. */
export type Command =
  | { readonly kind: 'state' }
  | { readonly kind: 'stories'; readonly count: number }
  | { readonly kind: 'story'; readonly id: string }
  /**
   * Forces breakers open or closed. With `auto`, they decide by themselves again. `policy` is the name of a
   * policy or of an upstream. Without a target, the command applies to all breakers of the policy.
   */
  | {
      readonly kind: 'breaker';
      readonly policy: string;
      readonly target?: string | undefined;
      readonly state: 'open' | 'closed' | 'auto';
      readonly because?: string | undefined;
    }
  | {
      readonly kind: 'drain';
      readonly upstream: string;
      readonly instance: string;
      readonly isDraining: boolean;
    }
  | { readonly kind: 'reload'; readonly config: GatewayConfig };

export interface Answers {
  readonly state: WorkerState;
  readonly stories: readonly RequestStory[];
  readonly story: RequestStory | null;
  readonly breaker: number;
  readonly drain: boolean;
  readonly reload: true;
}

export function execute<K extends Command['kind']>(
  gateway: GatewayProcess,
  command: Extract<Command, { kind: K }>,
): Answers[K];
export function execute(gateway: GatewayProcess, command: Command): Answers[Command['kind']] {
  switch (command.kind) {
    case 'state':
      return workerState(gateway);
    case 'stories':
      return gateway.stories.latest(command.count);
    case 'story':
      return gateway.stories.of(command.id) ?? null;
    case 'breaker': {
      const { policy, target, state, because } = command;
      // The name of an upstream stands for all its policies: that of the upstream, and those of its routes.
      const upstream = gateway.upstreams.get(policy);
      const names = upstream ? upstream.policies.map(({ name }) => name) : [policy];
      const breakers = new Set(
        names.flatMap((name) => (target === undefined ? breakersOf(name) : (breakerOf(name, target) ?? []))),
      );
      const now = gateway.clock.now();
      for (const breaker of breakers) breaker.force(state === 'auto' ? undefined : state, now, because);
      return breakers.size;
    }
    case 'drain':
      return gateway.upstreams.get(command.upstream)?.drain(command.instance, command.isDraining) ?? false;
    case 'reload':
      gateway.reload(command.config);
      return true;
  }
}

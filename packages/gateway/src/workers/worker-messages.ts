import type { Answers, Command } from '../admin/control.ts';
import type { GatewayConfig } from '../file/gateway-config.ts';

/** Messages from the first process to a worker. */
export type ToWorker =
  | {
      readonly kind: 'start';
      readonly config: GatewayConfig;
      readonly workers: number;
      readonly prefix: string | undefined;
    }
  | { readonly kind: 'command'; readonly id: number; readonly command: Command }
  | { readonly kind: 'connection'; readonly id: number }
  | { readonly kind: 'stop' };

/** Messages from a worker to the first process. */
export type FromWorker =
  | { readonly kind: 'ready' }
  | { readonly kind: 'accepted'; readonly id: number }
  | { readonly kind: 'failed'; readonly error: string }
  | { readonly kind: 'answer'; readonly id: number; readonly answer: Answers[Command['kind']] }
  | { readonly kind: 'refused'; readonly id: number; readonly error: string }
  | { readonly kind: 'drained'; readonly cutOff: number };

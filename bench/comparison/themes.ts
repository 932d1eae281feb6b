import { breakers } from './breakers.ts';
import { calls } from './calls.ts';
import type { Theme } from './claim.ts';
import { http } from './http.ts';
import { queues } from './queues.ts';

/** The tables of docs/comparison.md. */
export const themes: readonly Theme[] = [calls, breakers, http, queues];

import { breaker, definePolicy, network, retry } from 'holdfast';

/** A kind of policy with two parts and one pack: only their code is in the bundle, only their fields in the document. */
export const small = definePolicy([retry, breaker, network]);

export const search = small({ attempts: 2, patience: '800ms', breaker: { consecutive: 5 } });

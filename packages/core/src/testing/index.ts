export { after, type Beat, type Call, heeding, type Scripted, scripted } from './scripted.ts';
export { seededRandom } from './seeded-random.ts';
export { type VirtualClock, type VirtualClockOptions, virtualClock } from './virtual-clock.ts';

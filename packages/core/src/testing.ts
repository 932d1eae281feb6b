export { after, type Beat, type Call, heeding, type Scripted, scripted } from './testing/scripted.ts';
export { seededRandom } from './testing/seeded-random.ts';
export { type VirtualClock, type VirtualClockOptions, virtualClock } from './testing/virtual-clock.ts';

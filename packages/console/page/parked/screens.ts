export { Event } from '../screens/event.tsx';
export { ParkingLot } from '../screens/parking-lot.tsx';
export { Replay } from '../screens/replay.tsx';
export { Replays } from '../screens/replays.tsx';

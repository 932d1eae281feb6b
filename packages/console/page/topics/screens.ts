export { Topic } from '../screens/topic.tsx';
export { Topics } from '../screens/topics.tsx';

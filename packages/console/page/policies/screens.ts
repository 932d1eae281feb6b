export { Policies } from '../screens/policies.tsx';
export { Policy } from '../screens/policy.tsx';

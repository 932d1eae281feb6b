export { Assemblies } from '../screens/assemblies.tsx';
export { Assembly } from '../screens/assembly.tsx';

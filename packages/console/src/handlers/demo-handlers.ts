import type { demoRoutes } from '../api/parts.ts';
import type { DemoPart } from '../console-options.ts';
import type { Handlers } from '../server/handler.ts';
import { Problem } from '../server/problem.ts';

export function demoHandlers(part: DemoPart | undefined): Handlers<keyof typeof demoRoutes> {
  function given(): DemoPart {
    if (part) return part;
    throw new Problem('feature-missing', 'This is no demo.');
  }
  return {
    'GET /demo': () => given().state(),
    async 'POST /demo/faults/:name'({ path: { name }, body: { isOn } }) {
      if (!(await given().setFault(name, isOn))) throw new Problem('unknown', `There is no fault "${name}".`);
      return given().state();
    },
  };
}

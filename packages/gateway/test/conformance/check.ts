import type { FeatureName, Gateway } from '../../src/index.ts';
import type { DataPlane } from './data-planes.ts';

export type Started = Gateway & { readonly url: string };

/** Something that both data planes must do. */
export interface Check {
  /** A sentence. */
  readonly name: string;
  /** What it is about: a plane that misses one of these skips it, by name. */
  readonly needs: readonly FeatureName[];
  /** A plane that only approximates one of these skips it, too. */
  readonly exactly?: readonly FeatureName[];
  run(plane: DataPlane): Promise<void>;
}

import { OptionsError } from 'holdfast';

/** Which policies to observe: all, or a list of names or policies. */
export type Policies = 'all' | readonly (string | { readonly name: string | undefined })[];

/** Returns whether the policy with this name is selected. */
export type Selection = (policy: string | undefined) => boolean;

export function selectionOf(policies: Policies): Selection {
  if (policies === 'all') return () => true;
  if (!Array.isArray(policies)) throw new OptionsError('policies', policies, "'all' or a list of policies");
  const names = new Set(policies.map((each) => (typeof each === 'string' ? each : nameOf(each))));
  return (policy) => policy !== undefined && names.has(policy);
}

function nameOf(policy: { readonly name: string | undefined }): string {
  if (typeof policy?.name === 'string') return policy.name;
  throw new OptionsError('policies', policy?.name, 'policies that have a name');
}

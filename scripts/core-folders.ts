interface FolderRule {
  /** Folders and files of `packages/core/src` that it may import besides itself. */
  readonly mayImport: readonly string[];
  /** False: types may come from anywhere in core, because some types describe each other. */
  readonly typesToo: boolean;
}

/**
 * Which folder of core may import which. Decisions and machines are pure: they know nothing of runs, policies and parts, not even
 * their types. A folder that is not here may import all of core.
 */
const folders: Readonly<Record<string, FolderRule>> = {
  time: { mayImport: [], typesToo: true },
  decide: { mayImport: [], typesToo: true },
  machines: { mayImport: ['time'], typesToo: true },
  classify: { mayImport: ['decide', 'report/errors.ts', 'policy/duration.ts'], typesToo: false },
  // Notices are a part, so they are made as one.
  report: { mayImport: ['decide', 'classify', 'policy/part.ts'], typesToo: false },
  run: {
    mayImport: ['time', 'decide', 'classify', 'machines', 'report', 'policy/duration.ts', 'fields.ts'],
    typesToo: false,
  },
  parts: {
    mayImport: [
      'time',
      'decide',
      'classify',
      'machines',
      'report',
      'run',
      'policy/part.ts',
      'policy/default-policy.ts',
      'fields.ts',
    ],
    typesToo: false,
  },
  testing: { mayImport: ['time', 'report/errors.ts', 'policy/duration.ts'], typesToo: false },
};

const core = 'packages/core/src/';

/** Why a file of core may not import another one; `undefined`: it may. */
export function folderComplaint(file: string, target: string, isType: boolean): string | undefined {
  if (!file.startsWith(core) || !target.startsWith(core)) return undefined;
  const [folder = ''] = file.slice(core.length).split('/');
  const rule = folders[folder];
  if (rule === undefined || (isType && !rule.typesToo)) return undefined;
  const inCore = target.slice(core.length);
  const isAllowed = [folder, ...rule.mayImport].some(
    (allowed) => inCore === allowed || inCore.startsWith(`${allowed}/`),
  );
  if (isAllowed) return undefined;
  return `${folder}/ may import ${rule.mayImport.length === 0 ? 'nothing outside of it' : `only ${rule.mayImport.join(', ')}`}`;
}

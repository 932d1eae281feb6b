import { type Assemblies, assemblies } from '@holdfast/assembly';
import type { Journal } from '@holdfast/contracts';
import { type Given, UsageError } from './command.ts';
import { onlyOperand } from './given-values.ts';
import { allPages, idsIn } from './parked-ids.ts';
import { wholeId } from './short-ids.ts';
import { type OpenStore, withStore } from './store.ts';
import type { Terminal } from './terminal.ts';

/** Calls `use` with the assemblies (work of several steps) of the store. This process runs none of them. */
export function withAssemblies<T>(
  given: Given,
  terminal: Terminal,
  use: (work: Assemblies, engine: OpenStore) => Promise<T>,
): Promise<T> {
  return withStore(given, terminal, (engine) => use(assemblies({ engine, programs: [] }), engine));
}

/**
 * Returns the whole id of the assembly (work of several steps) that the user named. The user may have
 * shortened the id. Throws a `UsageError` if no assembly has it.
 */
export async function assemblyId(given: Given, journal: Journal): Promise<string> {
  return wholeAssemblyId(onlyOperand(given, 'the id of an assembly'), journal);
}

export async function wholeAssemblyId(text: string, journal: Journal): Promise<string> {
  const found = await tryAssemblyId(text, journal);
  if (found === undefined) throw new UsageError(`there is no assembly "${text}" here.`);
  return found;
}

/** Like `wholeAssemblyId`, but returns undefined if there is no such assembly. */
export async function tryAssemblyId(text: string, journal: Journal): Promise<string | undefined> {
  const [known] = await journal.get([text]);
  if (known) return known.id;
  const all = idsIn(
    allPages((page) => journal.list({}, page)),
    'id',
  );
  return wholeId('assemblies', text, all);
}

/** Returns the whole fingerprint of a group of parked assemblies. An unknown one is returned unchanged. */
export async function assemblyGroup(text: string, journal: Journal): Promise<string> {
  async function* fingerprints() {
    yield (await journal.parkedGroups(groupsMax)).flatMap(({ fingerprint }) => fingerprint ?? []);
  }
  return (await wholeId('groups', text, fingerprints())) ?? text;
}

const groupsMax = 1000;

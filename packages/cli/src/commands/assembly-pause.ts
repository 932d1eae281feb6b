import { programTopic } from '@holdfast/assembly';
import type { Journal, TopicControl } from '@holdfast/contracts';
import { actFlags, actOf, byHand, harmlessActFlags } from '../acts.ts';
import { withAssemblies } from '../assembly-ids.ts';
import { type Command, type Given, UsageError } from '../command.ts';
import { didYouMean } from '../did-you-mean.ts';
import { onlyOperand } from '../given-values.ts';
import { imposeControl, lastingFlag, liftControl, pauseLastingFlag } from '../impose-control.ts';
import { quarantineOf, whoseFlags } from '../quarantine-flags.ts';
import { storeFlag } from '../store.ts';

export const assemblyPause: Command = programCommand(
  'assembly pause',
  'let no worker begin or go on with assemblies of a program',
  "assembly pause place-order --for 10m --why 'the bank is down'",
  (topic) => ({ kind: 'pause', topic }),
);

export const assemblyUnpause: Command = programCommand(
  'assembly unpause',
  'let workers go on with a program',
  'assembly unpause place-order',
  (topic) => ({ kind: 'pause', topic }),
);

export const assemblyQuarantine: Command = programCommand(
  'assembly quarantine',
  'hold the assemblies of one tenant or one key back; others go on',
  "assembly quarantine place-order --tenant acme --for 1h --why 'their data breaks us'",
  quarantineOf,
);

export const assemblyRelease: Command = programCommand(
  'assembly release',
  'end a quarantine; what it held goes on within 30 s',
  'assembly release place-order --tenant acme',
  quarantineOf,
);

function programCommand(
  name: string,
  summary: string,
  example: string,
  controlOf: (topic: string, given: Given) => TopicControl,
): Command {
  const lifts = name === 'assembly unpause' || name === 'assembly release';
  return {
    name,
    summary,
    operands: '<program>',
    flags: {
      ...storeFlag,
      ...(controlOf === quarantineOf && whoseFlags('assemblies')),
      ...(lifts
        ? harmlessActFlags
        : { ...(name === 'assembly pause' ? pauseLastingFlag : lastingFlag), ...actFlags }),
    },
    examples: [example],
    run: (given, terminal) =>
      withAssemblies(given, terminal, async ({ journal }, engine) => {
        const control = controlOf(programTopic(await programOperand(given, journal)), given);
        return lifts
          ? liftControl(engine, control, actOf(given, terminal, byHand), given, terminal)
          : imposeControl(engine, control, actOf(given, terminal), given, terminal);
      }),
  };
}

/** Throws a `UsageError` if the store has no assembly (work of several steps) of this program. */
async function programOperand(given: Given, journal: Journal): Promise<string> {
  const program = onlyOperand(given, 'the name of a program');
  const names = [...new Set((await journal.counts()).map(({ name }) => name))];
  if (names.includes(program)) return program;
  throw new UsageError(`there is no program "${program}" here${didYouMean(program, names) || '.'}`);
}

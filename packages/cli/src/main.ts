#!/usr/bin/env node
import { runCommand } from './command.ts';
import { commands } from './commands.ts';
import { processShell } from './shell.ts';

process.exitCode = await runCommand(commands, process.argv.slice(2), processShell());

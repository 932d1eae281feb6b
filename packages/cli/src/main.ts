#!/usr/bin/env node
import { runCommand } from './command.ts';
import { commands } from './commands.ts';
import { processTerminal } from './terminal.ts';

process.exitCode = await runCommand(commands, process.argv.slice(2), processTerminal());

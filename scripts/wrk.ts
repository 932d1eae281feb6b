import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { findPrograms } from './services/programs.ts';

export interface WrkResult {
  readonly requests: number;
  readonly seconds: number;
  /** Responses that are not 2xx or 3xx. */
  readonly bad: number;
  readonly socketErrors: number;
}

export interface WrkLoad {
  readonly url: string;
  readonly connections: number;
  readonly seconds: number;
  /** Lua that makes the requests, after the rules of wrk. */
  readonly script: string;
  /** Words before the command, such as `taskset`. */
  readonly before?: readonly string[];
}

export function findWrk(): { readonly program: string } | { readonly missing: string } {
  const found = findPrograms(['wrk']);
  return found.missing === undefined
    ? { program: found.programs.wrk! }
    : { missing: `${found.missing} (Debian has it as wrk)` };
}

/** Runs wrk with one thread for so long. */
export async function wrk(program: string, load: WrkLoad): Promise<WrkResult> {
  const { url, connections, seconds, script, before = [] } = load;
  const file = path.join(mkdtempSync(path.join(tmpdir(), 'holdfast-wrk-')), 'requests.lua');
  writeFileSync(file, script + done);
  const options = ['-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '10s', '-s', file, url];
  const [first, ...rest] = [...before, program, ...options];
  const child = spawn(first!, rest, { stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  child.stdout.on('data', (text) => {
    output += text;
  });
  const [code] = await once(child, 'close');
  rmSync(path.dirname(file), { recursive: true });
  const [, counts] = /^RESULT (.*)$/m.exec(output) ?? [];
  if (code !== 0 || counts === undefined) throw new Error(`wrk ended with ${code}: ${output}`);
  const [requests = 0, microseconds = 0, bad = 0, ...errors] = counts.split(' ').map(Number);
  const socketErrors = errors.reduce((sum, count) => sum + count, 0);
  return { requests, seconds: microseconds / 1e6, bad, socketErrors };
}

const done = `
done = function(summary)
  local e = summary.errors
  io.write(string.format("RESULT %d %d %d %d %d %d %d\\n", summary.requests, summary.duration, e.status, e.connect, e.read, e.write, e.timeout))
end
`;

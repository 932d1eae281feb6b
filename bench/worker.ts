import { fork } from 'node:child_process';

/**
 * Runs a job in a process of its own: `file` is a module that calls `serve`. A process that measures time must not have
 * collected garbage on demand, and one that counts timers must wrap them before anything is imported.
 */
export function inProcess<Job, Answer>(file: string, flags: readonly string[], job: Job): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const child = fork(file, {
      execArgv: ['--conditions=holdfast-source', '--no-warnings', ...flags],
      serialization: 'advanced',
    });
    let answer: { value: Answer } | undefined;
    child.once('message', (message) => {
      answer = { value: message as Answer };
    });
    child.once('error', reject);
    child.once('exit', (code, signal) => {
      if (answer !== undefined) resolve(answer.value);
      else reject(new Error(`${file} ended with ${signal ?? `code ${code}`} and gave no answer.`));
    });
    child.send(job as object);
  });
}

/** The other end: does the job that was sent, answers and ends the process, whatever timers are left. */
export function serve<Job, Answer>(work: (job: Job) => Promise<Answer>): void {
  process.once('disconnect', () => process.exit(1));
  process.once('message', async (job) => {
    const answer = await work(job as Job);
    process.send?.(answer, () => process.exit(0));
  });
}

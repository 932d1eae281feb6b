import { lint } from 'holdfast/lint';

/** One warning: the rule `no-jitter` at `backoff.jitter`, with what was found, why it is bad, and a fix. */
export const findings = lint({ backoff: { jitter: 'none' } });

export { openSqs } from './open-sqs.ts';
export { SqsError } from './sqs-errors.ts';
export { type SqsOptions, sqsLimits } from './sqs-options.ts';

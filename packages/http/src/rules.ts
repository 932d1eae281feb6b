/**
 * The rules of the HTTP client, for code that sends requests itself, such as a gateway. They say which
 * requests may be repeated, and how responses and errors are classified.
 */
export { noteFailed, type ResponseHead, responseClassifier } from './classify-response.ts';
export { type RequestTraits, requestTraits } from './request-traits.ts';

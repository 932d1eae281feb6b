/**
 * The rules of the HTTP client for code that sends requests itself, such as a gateway: what may be repeated, and what a
 * response or an error means.
 */
export { noteFailed, type ResponseHead, responseClassifier } from './classify-response.ts';
export { type RequestTraits, requestTraits } from './request-traits.ts';

/** Methods that may be sent again by their definition (RFC 9110, 9.2.2, and the QUERY draft). */
const repeatable = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'QUERY', 'PUT', 'DELETE']);

export function isRepeatable(method: string): boolean {
  return method === 'GET' || repeatable.has(method.toUpperCase());
}

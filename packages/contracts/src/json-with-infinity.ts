/** For engines: what was asked for, as JSON. That knows no infinity and says null, which would be another rate, or another time. */
export function jsonWithInfinity(asked: object): string {
  return JSON.stringify(asked, (_, value) =>
    value === Infinity || value === -Infinity ? Math.sign(value) * Number.MAX_VALUE : value,
  );
}

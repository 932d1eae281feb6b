export function errorLine(reason: string, message: string): string {
  return message ? `${reason}: ${message}` : reason;
}

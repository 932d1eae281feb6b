/** A warning that no process continues this operation, and how the user can continue it. */
export function unmaintained(id: string): string {
  return (
    `no process that reports here runs maintenance, so nothing moves ${id} on: run it now with ` +
    `"holdfast dlq replay --resume ${id}", or start maintenance({ engine }) of @holdfast/events in a process.`
  );
}

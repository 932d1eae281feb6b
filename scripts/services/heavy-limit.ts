/** A heavy server that runs, or waits until it may. */
export interface HeavyServer {
  /** The processes that use it; one that asked twice is in it twice. */
  readonly users: string[];
  /** Stops it, once nobody uses it. Absent: only its user does. */
  stopIdle?(): Promise<void>;
}

export interface HeavyLimit {
  /** Resolves when it may be started. Servers are admitted in the order they came. */
  enter(server: HeavyServer): Promise<void>;
  /** It has ended, or need not be started any more. */
  leave(server: HeavyServer): void;
  /** Somebody does not use a server any more. */
  look(): void;
}

/** Bounds how many heavy servers run at a time. Those that nobody uses are stopped to make room. */
export function heavyLimit(serversMax: number): HeavyLimit {
  const running = new Set<HeavyServer>();
  const waiting = new Map<HeavyServer, () => void>();
  let isStopping = false;

  function look(): void {
    for (const [server, admit] of waiting) {
      if (running.size >= serversMax && !isDeadlock()) {
        stopOne();
        return;
      }
      waiting.delete(server);
      running.add(server);
      admit();
    }
  }

  /** One at a time: the next look may find that it was enough. */
  function stopOne(): void {
    const idle = [...running].find(({ users, stopIdle }) => users.length === 0 && stopIdle !== undefined);
    if (isStopping || idle === undefined) return;
    isStopping = true;
    void idle.stopIdle!().finally(() => {
      isStopping = false;
      leave(idle);
    });
  }

  /** Every process that has a server waits for one more: nobody would ever give one back. */
  function isDeadlock(): boolean {
    const waitingUsers = new Set([...waiting.keys()].flatMap(({ users }) => users));
    return [...running].every(
      ({ users }) => users.length > 0 && users.every((user) => waitingUsers.has(user)),
    );
  }

  function leave(server: HeavyServer): void {
    running.delete(server);
    waiting.delete(server);
    look();
  }

  return {
    enter: (server) =>
      new Promise((resolve) => {
        waiting.set(server, resolve);
        look();
      }),
    leave,
    look,
  };
}

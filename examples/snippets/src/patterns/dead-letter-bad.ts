/** An event that can never be handled is tried once a second for ever, and its worker does nothing else. */
export async function handle(event: { weight: number }, ship: (weight: number) => Promise<void>) {
  for (;;) {
    try {
      return await ship(event.weight);
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  }
}

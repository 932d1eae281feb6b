/** Nothing says how long this may take. If the server hangs, so does the customer, and the socket stays taken. */
export async function profile(url: string): Promise<string> {
  const response = await fetch(url);
  return response.text();
}

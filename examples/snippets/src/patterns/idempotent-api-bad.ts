/** A response that is lost looks like a failure. The card was charged, and the next POST charges it again. */
export async function pay(send: typeof fetch, order: string): Promise<Response> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await send('https://payments.test/charges', { method: 'POST', body: order });
    } catch (error) {
      if (attempt === 4) throw error;
    }
  }
}

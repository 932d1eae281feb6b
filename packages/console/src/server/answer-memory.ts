const answersMax = 500;
/**
 * Answers with more bytes than this are not remembered. If such a request is repeated, it is executed again.
 */
const bytesMax = 64 * 1024;

interface Remembered {
  readonly status: number;
  readonly headers: [string, string][];
  readonly body: string;
}

/**
 * Returns the first answer again when an act (a request that changes something) is repeated with the same
 * `Idempotency-Key`, as after a double click. Acts that failed are not remembered, so that they can be
 * repeated.
 */
export class AnswerMemory {
  readonly #answers = new Map<string, Promise<Remembered>>();

  async once(key: string, run: () => Promise<Response>): Promise<Response> {
    const known = this.#answers.get(key);
    if (known) return responseOf(await known);
    const running = run().then(remembered);
    this.#answers.set(key, running);
    if (this.#answers.size > answersMax) this.#answers.delete(this.#answers.keys().next().value!);
    try {
      const answer = await running;
      if (answer.status >= 400 || answer.body.length > bytesMax) this.#answers.delete(key);
      return responseOf(answer);
    } catch (error) {
      this.#answers.delete(key);
      throw error;
    }
  }
}

async function remembered(response: Response): Promise<Remembered> {
  return { status: response.status, headers: [...response.headers], body: await response.text() };
}

function responseOf({ status, headers, body }: Remembered): Response {
  return new Response(body, { status, headers });
}

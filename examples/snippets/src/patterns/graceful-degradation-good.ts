import { policy } from 'holdfast';

/** The reader waits 300 ms for suggestions at most. If there are none, the page says so and is complete without. */
export const suggestions = policy({
  name: 'suggestions',
  patience: '300ms',
  fallback: { to: 'nothing else today' },
});

export async function page(article: string): Promise<string> {
  const others = await suggestions.run(async ({ signal }) => {
    const response = await fetch(`https://suggestions.test/${article}`, { signal });
    if (!response.ok) throw Object.assign(new Error('no suggestions'), { status: response.status });
    return response.text();
  });
  return `${article}, and then: ${others}`;
}

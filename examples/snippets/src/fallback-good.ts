import { policy } from 'holdfast';

/** A page without suggestions is better than no page. 50 ms are kept for asking the older list. */
export const suggestions = policy({
  patience: '300ms',
  fallback: { to: [() => lastWeeks(), []], reserve: '50ms' },
});

export function suggest(user: string): Promise<string[]> {
  return suggestions.run(async ({ signal }) => {
    const response = await fetch(`https://suggestions.test/${user}`, { signal });
    if (!response.ok) throw Object.assign(new Error('refused'), { status: response.status });
    return response.json();
  });
}

async function lastWeeks(): Promise<string[]> {
  const response = await fetch('https://suggestions.test/last-week');
  return response.json();
}

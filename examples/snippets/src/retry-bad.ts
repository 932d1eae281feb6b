import { policy } from 'holdfast';

/** Whatever is thrown is tried again, a mistake in the program too, and nobody says for how long. */
export const stubborn = policy({
  patience: 'unlimited',
  attempts: 100,
  attemptTimeout: '5s',
  retryOnly: 'any',
});

export function product(id: string): Promise<string> {
  return stubborn.run(async () => {
    const response = await fetch(`https://catalogue.test/products/${id}`);
    const { name } = await response.json();
    return name.toUpperCase();
  });
}

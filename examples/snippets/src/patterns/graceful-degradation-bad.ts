/** The article is there, and the reader does not get it, because the suggestions below it are not. */
export async function page(article: string): Promise<string> {
  const response = await fetch(`https://suggestions.test/${article}`);
  if (!response.ok) throw new Error(`suggestions answered ${response.status}`);
  return `${article}, and then: ${await response.text()}`;
}

import { type Policy, policy } from 'holdfast';

interface Section {
  readonly name: string;
  readonly text: string;
  /** True: the service did not answer in time, and the text is what the page shows instead. */
  readonly isFallback: boolean;
}

/** What the page shows where a service does not answer. The first two have nothing: without them there is no page. */
const fallbacks = {
  product: undefined,
  price: undefined,
  stock: 'Ask in the shop whether it is there.',
  delivery: 'In 2 to 5 days.',
  reviews: 'Reviews are not available at the moment.',
  suggestions: 'Look at our bestsellers.',
  pictures: 'No picture.',
  recent: 'Nothing yet.',
} as const;
type Service = keyof typeof fallbacks;
const services = Object.keys(fallbacks) as Service[];

/** The whole page has 3 s. Each call has 2 s of it, all calls run at the same time, and each has its own breaker. */
const policies = Object.fromEntries(
  services.map((service) => {
    const to = fallbacks[service];
    return [service, policy({ name: service, patience: '2s', ...(to && { fallback: { to } }) })];
  }),
) as Record<Service, Policy>;
const page = policy({ name: 'page', attempts: 1, patience: '3s' });

/** Makes the page of a product from eight calls. */
export function renderPage(origin: string): Promise<string> {
  return page.run(async ({ signal }) => {
    const sections = await Promise.all(services.map((service) => ask(origin, service, signal)));
    return `<main>\n${sections.map(toHtml).join('\n')}\n</main>`;
  });
}

async function ask(origin: string, name: Service, parent: AbortSignal): Promise<Section> {
  const ending = await policies[name].try(
    async ({ signal }) => {
      const response = await fetch(`${origin}/${name}`, { signal });
      if (!response.ok) throw Object.assign(new Error(name), { status: response.status });
      return response.text();
    },
    { signal: parent },
  );
  if (!ending.ok) throw ending.error;
  return { name, text: ending.value, isFallback: ending.from === 'fallback' };
}

function toHtml({ name, text, isFallback }: Section): string {
  return `  <section id="${name}"${isFallback ? ' data-fallback' : ''}>${text}</section>`;
}

import { useQuery } from '../use-query.ts';

export function Explanation({ text, document }: { readonly text: string; readonly document: unknown }) {
  const { query, href } = useQuery();
  const isDocument = query.as === 'document';
  return (
    <div class="sheet">
      <header>
        <h2>What it does</h2>
        <span class="small">in the order in which it is done</span>
        <nav class="segments right" aria-label="As">
          <a class="btn tiny" href={href({ as: undefined })} aria-current={isDocument ? undefined : 'true'}>
            Words
          </a>
          <a class="btn tiny" href={href({ as: 'document' })} aria-current={isDocument ? 'true' : undefined}>
            Document
          </a>
        </nav>
      </header>
      <div class="body">
        {isDocument ? (
          <pre class="words">{JSON.stringify(document, null, 2)}</pre>
        ) : (
          sectionsOf(text).map(({ title, lines }) => <Section key={title} title={title} lines={lines} />)
        )}
      </div>
    </div>
  );
}

function Section({ title, lines }: { readonly title: string; readonly lines: readonly string[] }) {
  if (lines.length === 0) return <p class="small soft">{title}</p>;
  const isRing = title.startsWith('Around');
  return (
    <details open={isRing}>
      <summary>{title}</summary>
      {isRing ? <Rings lines={lines} /> : <pre class="words">{lines.join('\n')}</pre>}
    </details>
  );
}

/** The width, in characters, of the column with the names of the parts. */
const nameWidth = 17;

/** Lists the parts of a policy, each with its sentence and its settings. */
function Rings({ lines }: { readonly lines: readonly string[] }) {
  const rings: { name: string; says: string; settings: string }[] = [];
  for (const line of lines) {
    const name = line.slice(0, nameWidth).trim();
    const says = line.slice(nameWidth).trim();
    if (name === '' && rings.length > 0) rings.at(-1)!.settings = says;
    else rings.push({ name, says, settings: '' });
  }
  return (
    <dl class="facts rings">
      {rings.map(({ name, says, settings }) => (
        <Ring key={name} name={name} says={says} settings={settings} />
      ))}
    </dl>
  );
}

function Ring({ name, says, settings }: Readonly<Record<'name' | 'says' | 'settings', string>>) {
  const isOff = says === 'off';
  return (
    <>
      <dt>{name}</dt>
      <dd class={isOff ? 'quiet' : undefined}>
        {says}
        {settings !== '' && <small class="mono quiet">{settings}</small>}
      </dd>
    </>
  );
}

/** Splits an explanation into sections. Each section begins with a line that is not indented. */
function sectionsOf(text: string): { readonly title: string; readonly lines: readonly string[] }[] {
  const sections: { title: string; lines: string[] }[] = [];
  for (const line of text.split('\n').slice(1)) {
    if (line.trim() === '') continue;
    if (line.startsWith(' ') && sections.length > 0) sections.at(-1)!.lines.push(line.slice(2));
    else sections.push({ title: line, lines: [] });
  }
  return sections;
}

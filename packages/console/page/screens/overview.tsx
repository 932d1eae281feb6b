import type { AnswerOf } from '../../src/api/routes.ts';
import { grouped, percent, span } from '../format.ts';
import { useKeys } from '../keys.ts';
import { lines, overview, type WindowName, windowName } from '../live.ts';
import { Glyph, type State } from '../parts/glyph.tsx';
import { Sparkline } from '../parts/sparkline.tsx';
import { StackedChart } from '../parts/stacked-chart.tsx';
import { Tour } from '../parts/tour.tsx';
import { useAnswer } from '../use-answer.ts';

type OverviewAnswer = AnswerOf<'GET /overview'>;
type Figure = OverviewAnswer['figures'][number];

const windows: readonly [WindowName, string][] = [
  ['15m', '15 min'],
  ['1h', '1 h'],
  ['24h', '24 h'],
];

/** The first screen. It answers: is anything wrong, and what must be done? */
export function Overview() {
  const asked = useAnswer(
    'GET /overview',
    overview.value ? undefined : { query: { window: windowName.value } },
  );
  const seen = overview.value ?? asked.answer;
  const step = (by: number) => {
    const at = windows.findIndex(([name]) => name === windowName.value);
    windowName.value = windows[Math.min(windows.length - 1, Math.max(0, at + by))]![0];
  };
  useKeys({
    '[': { says: 'a shorter window', run: () => step(-1) },
    ']': { says: 'a longer window', run: () => step(1) },
  });
  if (!seen) return <section class="view" aria-busy="true" />;
  return (
    <section class="view" aria-labelledby="overview-title">
      <header>
        <div>
          <h1 id="overview-title" tabIndex={-1}>
            {seen.headline}
          </h1>
          <p>{seen.summary}</p>
        </div>
        <div class="acts">
          <div class="segments" role="group" aria-label="Time window">
            {windows.map(([name, says]) => (
              <button
                key={name}
                type="button"
                class="btn"
                aria-pressed={windowName.value === name}
                onClick={() => {
                  windowName.value = name;
                }}
              >
                {says}
              </button>
            ))}
          </div>
        </div>
      </header>
      <Needs seen={seen} />
      <Tour />
      <div class="sheet">
        <ul class="figures">
          {seen.figures.map((figure) => (
            <FigureBox key={figure.name} figure={figure} />
          ))}
        </ul>
      </div>
      <Lens seen={seen} />
      <div class="two">
        <OverTime />
        <Tail />
      </div>
    </section>
  );
}

function Needs({ seen }: { readonly seen: OverviewAnswer }) {
  return (
    <div class="sheet">
      {seen.needs.length > 0 && (
        <ol class="needs" aria-live="polite">
          {seen.needs.map((need, index) => (
            <li key={need.kind + need.link}>
              <Glyph state={need.state} />
              <div>
                <b>{need.title}</b>
                <p>{need.says}</p>
              </div>
              <a class={index === 0 ? 'btn first' : 'btn'} href={need.link}>
                {need.button}
              </a>
            </li>
          ))}
        </ol>
      )}
      <footer>
        <span>
          <Glyph state="ok" label="good" />
          &ensp;{seen.needs.length > 0 ? 'Nothing else' : 'Checked'}: {seen.good.join(' · ')} · the store
          answers in {seen.store.answersInMs} ms
        </span>
      </footer>
    </div>
  );
}

const labels: Readonly<Record<Figure['name'], string>> = {
  retryRate: 'Retry rate',
  successAfterRetry: 'Success after retry',
  load: 'Load multiplication',
  parked: 'Parked',
  oldestDue: 'Oldest due',
  breakersOpen: 'Breakers open',
};

const states: Partial<Record<Figure['name'], State>> = {
  parked: 'parked',
  oldestDue: 'waiting',
  breakersOpen: 'refused',
};

function FigureBox({ figure: { name, value, of, says, link, points } }: { readonly figure: Figure }) {
  const state = value > 0 ? states[name] : undefined;
  const [text, unit] = shownValue(name, value, of);
  return (
    <li>
      <span class="label">{labels[name]}</span>
      <strong class={state ? `is-${state}` : ''}>
        <a href={link}>{text}</a> <small>{unit}</small>
      </strong>
      <Sparkline points={points} state={state} says={`${labels[name]} over time, now ${text} ${unit}`} />
      <span class="note">{says}</span>
    </li>
  );
}

function shownValue(
  name: Figure['name'],
  value: number,
  of: number | undefined,
): [text: string, unit: string] {
  switch (name) {
    case 'retryRate':
    case 'successAfterRetry':
      return [(value * 100).toFixed(1), '%'];
    case 'load':
      return [value.toFixed(2), '×'];
    case 'oldestDue':
      return [value === 0 ? '–' : span(value), ''];
    case 'breakersOpen':
      return [grouped(value), of === undefined ? '' : `of ${of}`];
    case 'parked':
      return [grouped(value), ''];
  }
}

const sliceLooks: Readonly<
  Record<string, { readonly fill: string; readonly state: State; readonly says: string }>
> = {
  okAtOnce: { fill: 'f-quiet', state: 'ok', says: 'ok at once' },
  okAfterRetry: { fill: 'f-ok', state: 'ok', says: 'ok after retry' },
  retrying: { fill: 'f-retrying', state: 'retrying', says: 'retrying' },
  waiting: { fill: 'f-waiting', state: 'waiting', says: 'waiting' },
  parked: { fill: 'f-parked', state: 'parked', says: 'parked' },
  refused: { fill: 'f-refused', state: 'refused', says: 'refused' },
};

/**
 * Shows one bar for all work. A second bar below it magnifies the work that did not succeed at the first
 * attempt.
 */
function Lens({ seen: { lens, since, now } }: { readonly seen: OverviewAnswer }) {
  const { total, slices } = lens;
  const rest = slices.filter(({ name }) => name !== 'okAtOnce');
  const troubled = rest.reduce((sum, { count }) => sum + count, 0);
  const bars = barsOf(slices, total);
  const magnified = barsOf(rest, troubled);
  const beginsAt = total > 0 ? ((total - troubled) / total) * 1000 : 1000;
  const words = slices.map(({ name, count }) => `${sliceLooks[name]!.says} ${grouped(count)}`).join('; ');
  return (
    <figure class="sheet lens">
      <header>
        <h2>What became of it</h2>
        <span class="small">each piece of work once, whatever its attempts</span>
      </header>
      <div class="body">
        <div class="ends">
          <span>
            <b>{grouped(total)}</b> pieces of work ended or begun; this console has looked for{' '}
            {span(now - since)}
          </span>
          <span>
            <b>{percent(total > 0 ? troubled / total : 0)}</b> did not succeed at once, magnified below
          </span>
        </div>
        <svg
          viewBox="0 0 1000 52"
          preserveAspectRatio="none"
          role="img"
          aria-label={`Of ${grouped(total)}: ${words}`}
        >
          {bars.map(({ name, x, width }) => (
            <rect key={name} class={sliceLooks[name]!.fill} x={x} y={0} width={width} height={14} />
          ))}
          {troubled > 0 && <polygon class="beam" points={`${beginsAt},15 1000,15 1000,29 0,29`} />}
          {magnified.map(({ name, x, width }) => (
            <rect key={name} class={sliceLooks[name]!.fill} x={x} y={30} width={width} height={22} />
          ))}
        </svg>
        <ul class="keys">
          {slices.map(({ name, count, says, link }) => (
            <li key={name}>
              <Glyph state={sliceLooks[name]!.state} label="" />
              <span>
                <a class="n" href={link}>
                  {grouped(count)}
                </a>{' '}
                {sliceLooks[name]!.says}
              </span>
              <small>
                {percent(total > 0 ? count / total : 0, 2)} · {says}
              </small>
            </li>
          ))}
        </ul>
      </div>
    </figure>
  );
}

function barsOf(slices: OverviewAnswer['lens']['slices'], total: number) {
  let x = 0;
  return slices.map(({ name, count }) => {
    const width = total > 0 ? (count / total) * 1000 : 0;
    const bar = { name, x, width };
    x += width;
    return bar;
  });
}

const chartSeries = [
  { name: 'okAfterRetry', says: 'ok after retry', state: 'ok' },
  { name: 'retries', says: 'retries', state: 'retrying' },
  { name: 'parked', says: 'parked', state: 'parked' },
  { name: 'refused', says: 'refused', state: 'refused' },
] as const;

function OverTime() {
  const of = ['work', ...chartSeries.map(({ name }) => name)].join(',');
  const { answer } = useAnswer('GET /series', { query: { of, window: windowName.value } }, 5000);
  return (
    <div class="sheet">
      <header>
        <h2>Over time</h2>
        <span class="small">what did not succeed at once, a second</span>
      </header>
      <div class="body">
        {answer && (
          <StackedChart
            now={answer.now}
            stepMs={answer.stepMs}
            series={chartSeries.map((each) => ({
              ...each,
              points: answer.series.find(({ name }) => name === each.name)?.points ?? [],
            }))}
          />
        )}
      </div>
    </div>
  );
}

function Tail() {
  return (
    <div class="sheet">
      <header>
        <h2>Live</h2>
        <span class="small">parked events, breakers, acts</span>
      </header>
      <ol class="tail" aria-label="Latest notices">
        {lines.value.slice(0, 50).map((line) => (
          <li key={`${line.at}${line.says}`}>
            <time dateTime={new Date(line.at).toISOString()}>{new Date(line.at).toLocaleTimeString()}</time>
            <Glyph state={line.state} label="" />
            <a href={line.link}>{line.says}</a>
          </li>
        ))}
      </ol>
      {lines.value.length === 0 && <p class="body quiet">Nothing has happened since you opened this page.</p>}
      <footer>
        <span>Retries and successes are counted, not listed: the store does not know single ones.</span>
      </footer>
    </div>
  );
}

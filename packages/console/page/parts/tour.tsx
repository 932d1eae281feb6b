import { ask } from '../api.ts';
import { session } from '../session.ts';
import { tell } from '../toast.tsx';
import { useAnswer } from '../use-answer.ts';
import { Glyph } from './glyph.tsx';

/** The guided tour of a demo: which fault to switch on, and where to see its effect. */
export function Tour() {
  const isDemo = session.value?.parts.demo === true;
  const asked = useAnswer('GET /demo', isDemo ? {} : undefined, 2000);
  const { answer, again } = asked;
  if (!isDemo || !answer) return null;
  return (
    <div class="sheet tour">
      <header>
        <h2>A tour</h2>
        <span class="small">this shop is a demo: break it, and look what happens</span>
      </header>
      <ol class="body steps">
        {answer.steps.map(({ title, says, isDone, link }, index) => (
          <li key={title} aria-current={index === answer.step ? 'step' : undefined} data-done={isDone}>
            <Glyph state={isDone ? 'ok' : 'waiting'} label={isDone ? 'done' : 'to do'} />
            <span>
              <b>{title}</b> <span class="soft">{says}</span> <a href={link}>show</a>
            </span>
          </li>
        ))}
      </ol>
      <footer>
        {answer.faults.map(({ name, says, isOn }) => (
          <button
            key={name}
            type="button"
            class="btn"
            aria-pressed={isOn}
            onClick={() => {
              ask('POST /demo/faults/:name', { path: { name }, body: { isOn: !isOn } }).then(
                again,
                (error: Error) => tell(error.message),
              );
            }}
          >
            {isOn ? 'Mend' : 'Break'} {says}
          </button>
        ))}
      </footer>
    </div>
  );
}

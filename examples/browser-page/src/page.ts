// Runs in the browser: asks for a price, says while it waits, and shows what came of it.
import { createFetch } from '@holdfast/http';

const ask = document.querySelector<HTMLButtonElement>('#ask')!;
const status = document.querySelector<HTMLOutputElement>('#status')!;
const waits = document.querySelector<HTMLOListElement>('#waits')!;

const fetch = createFetch({
  policy: { name: 'price', patience: '8s' },
  onWait({ attempt, delayMs, patienceLeft }) {
    const line = document.createElement('li');
    line.textContent = `attempt ${attempt} failed`;
    waits.append(line);
    status.textContent = `The shop is busy. The next attempt is in ${Math.ceil(delayMs / 1000)} s, and we wait for at most ${Math.ceil(patienceLeft / 1000)} s.`;
  },
});

ask.addEventListener('click', async () => {
  ask.disabled = true;
  waits.replaceChildren();
  status.textContent = 'Asking…';
  try {
    const response = await fetch('/api/price');
    status.textContent = response.ok ? await response.text() : `The shop did not answer: ${response.status}.`;
  } catch {
    status.textContent = 'The shop cannot be reached. Please try again.';
  }
  ask.disabled = false;
});

import type { DemoPart } from '@holdfast/console';
import type { Triage } from '@holdfast/contracts';
import { policies } from 'holdfast';
import type { Payment } from './payment.ts';

/** The guided tour: what to break, and what to look at then. A step is done when it was seen to happen. */
export function tour(payment: Payment, triage: Triage): DemoPart {
  const seen = { away: false, open: false, rejected: false, parked: false, mended: false, replayed: false };

  async function look(): Promise<void> {
    seen.away ||= payment.isAway;
    seen.open ||= seen.away && breakerIsOpen();
    seen.rejected ||= payment.rejects;
    seen.parked ||= (await triage.count({})) > 0;
    seen.mended ||= seen.parked && seen.rejected && !payment.rejects && !payment.isAway;
    seen.replayed ||= seen.mended && (await triage.count({ status: 'resolved' })) > 0;
  }

  return {
    async state() {
      await look();
      const steps = [
        {
          title: 'Take payment off the network.',
          says: 'Both instances refuse connections; the gateway retries, and then answers 503.',
          isDone: seen.away,
          link: '/gateway',
        },
        {
          title: 'Watch the breaker open.',
          says: 'The consumer takes no more orders: they wait, and no attempt is used up. Mend it, and they go on.',
          isDone: seen.open,
          link: '/policies/payment',
        },
        {
          title: 'Let payment reject every charge.',
          says: 'No retry helps against a 422, so each order is set aside with its story.',
          isDone: seen.rejected && seen.parked,
          link: '/parked',
        },
        {
          title: 'Mend it.',
          says: 'New orders flow; those that were set aside still wait.',
          isDone: seen.mended,
          link: '/',
        },
        {
          title: 'Replay the group.',
          says: 'Five first, as a canary; then the rest, at a rate. Nobody is charged twice.',
          isDone: seen.replayed,
          link: '/parked',
        },
      ];
      const step = steps.findIndex(({ isDone }) => !isDone);
      return {
        faults: [
          { name: 'away', says: 'payment: away', isOn: payment.isAway },
          { name: 'rejects', says: 'payment: rejects every charge', isOn: payment.rejects },
          { name: 'slow', says: 'one instance: slow', isOn: payment.isSlow },
        ],
        step: step < 0 ? steps.length : step,
        steps,
      };
    },

    async setFault(name, isOn) {
      if (name === 'away') await payment.setAway(isOn);
      else if (name === 'slow') await payment.setSlow(isOn);
      else if (name === 'rejects') payment.rejects = isOn;
      else return false;
      return true;
    },
  };
}

function breakerIsOpen(): boolean {
  const payment = policies().find(({ name }) => name === 'payment');
  return payment?.targets.some(({ breaker }) => breaker === 'open') ?? false;
}

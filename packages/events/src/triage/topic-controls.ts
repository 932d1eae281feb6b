import { type Act, type ActiveControl, type Broker, type Control, controlId } from '@holdfast/contracts';
import { type Duration, durationMs, OptionsError } from 'holdfast';

/** A tenant or key in quarantine: its events are not leased. */
export type Quarantined = { readonly tenant: string } | { readonly key: string };

/**
 * Lets operators control all consumers of one topic, in every process. `lasting`: the control ends by itself
 * after this time.
 */
export interface TopicControls {
  pause(act: Act, lasting?: Duration): Promise<ActiveControl>;
  /** Ends a pause. Returns false if the topic was not paused. */
  resume(act: Act): Promise<boolean>;
  /** Pauses only the retries of the topic. First attempts continue. */
  pauseRetries(act: Act, lasting?: Duration): Promise<ActiveControl>;
  resumeRetries(act: Act): Promise<boolean>;
  quarantine(what: Quarantined, act: Act, lasting?: Duration): Promise<ActiveControl>;
  release(what: Quarantined, act: Act): Promise<boolean>;
  /**
   * The consumer that leases this event next parks it (sets it aside for an operator) instead of handling it.
   */
  skip(eventId: string, act: Act): Promise<ActiveControl>;
  /** Consumers move events to the topic `to` instead of handling them. Without `type`, this applies to all events. */
  reroute(to: string, act: Act, type?: string): Promise<ActiveControl>;
  stopRerouting(act: Act, type?: string): Promise<boolean>;
  /** Sets how many handlers each consumer may run at the same time. */
  concurrency(concurrencyMax: number, act: Act): Promise<ActiveControl>;
  active(): Promise<readonly ActiveControl[]>;
}

/** Creates the object with which operators control one topic. */
export function topicControls({ controls }: Pick<Broker, 'controls'>, topic: string): TopicControls {
  assertText('topic', topic);
  const impose = (control: Control, act: Act, lasting?: Duration) =>
    controls.impose(control, act, lasting === undefined ? undefined : durationMs(lasting, 'lasting'));
  const lift = (control: Control, act: Act) => controls.lift(controlId(control), act);
  const ofType = (type: string | undefined) => (type === undefined ? {} : { type });

  return {
    pause: (act, lasting) => impose({ kind: 'pause', topic }, act, lasting),
    resume: (act) => lift({ kind: 'pause', topic }, act),
    pauseRetries: (act, lasting) => impose({ kind: 'pause', topic, only: 'retries' }, act, lasting),
    resumeRetries: (act) => lift({ kind: 'pause', topic, only: 'retries' }, act),
    async quarantine(what, act, lasting) {
      const { tenant, key } = { tenant: undefined, key: undefined, ...what };
      if ((tenant === undefined) === (key === undefined))
        throw new OptionsError('what', what, 'a tenant or a key');
      assertText('what', tenant ?? key);
      return impose({ kind: 'quarantine', topic, ...what }, act, lasting);
    },

    release: (what, act) => lift({ kind: 'quarantine', topic, ...what }, act),

    async skip(eventId, act) {
      assertText('eventId', eventId);
      return impose({ kind: 'skip', topic, eventId }, act);
    },

    async reroute(to, act, type) {
      assertText('to', to);
      if (to === topic) throw new OptionsError('to', to, 'another topic than this one');
      return impose({ kind: 'reroute', topic, to, ...ofType(type) }, act);
    },

    stopRerouting: (act, type) => lift({ kind: 'reroute', topic, to: '', ...ofType(type) }, act),

    async concurrency(concurrencyMax, act) {
      if (!Number.isInteger(concurrencyMax) || concurrencyMax < 1) {
        throw new OptionsError(
          'concurrencyMax',
          concurrencyMax,
          'a whole number from 1; to have none, pause',
        );
      }
      return impose({ kind: 'concurrency', topic, concurrencyMax }, act);
    },

    async active() {
      const all = await controls.active();
      return all.controls.filter(({ control }) => 'topic' in control && control.topic === topic);
    },
  };
}

function assertText(path: string, name: unknown): void {
  if (typeof name !== 'string' || name === '') throw new OptionsError(path, name, 'a text');
}

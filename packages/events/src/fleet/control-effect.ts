import type { Control } from '@holdfast/contracts';

/** Describes what an operator's control does, in a few words: `paused`, `tenant acme quarantined`. */
export function controlEffect(control: Control): string {
  switch (control.kind) {
    case 'pause':
      return 'only' in control && control.only ? 'retries paused' : 'paused';
    case 'quarantine':
      return 'tenant' in control && control.tenant !== undefined
        ? `tenant ${control.tenant} quarantined`
        : `key ${'key' in control ? control.key : ''} quarantined`;
    case 'skip':
      return `event ${control.eventId} skipped`;
    case 'reroute':
      return `${control.type === undefined ? 'all events' : `events of type ${control.type}`} rerouted to ${control.to}`;
    case 'concurrency':
      return `limited to ${control.concurrencyMax} handlers at once in each consumer`;
    case 'breaker':
      return `${control.target === undefined ? 'all breakers' : `breaker of ${control.target}`} forced ${control.state}`;
    case 'retries':
      return 'retries switched off';
    case 'mode':
      return `mode set to ${control.mode}`;
  }
}

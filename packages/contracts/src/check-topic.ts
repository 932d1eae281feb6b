import { OptionsError } from 'holdfast';
import type { TopicSettings } from './broker.ts';
import { checkName } from './check-name.ts';
import { checkSpan } from './check-span.ts';

/** For engines, before a topic is declared: it would be found out when its first event is to be handled. */
export function checkTopic(name: string, { ordering, keepSettledMs }: Partial<TopicSettings>): void {
  if (typeof name !== 'string' || name === '') throw new OptionsError('topic', name, 'the name of a topic');
  checkName('topic', name);
  if (ordering !== undefined && ordering !== 'none' && ordering !== 'key')
    throw new OptionsError('ordering', ordering, 'none or key');
  checkSpan('keepSettledMs', keepSettledMs);
}

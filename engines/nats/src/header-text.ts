import type { Headers } from '@holdfast/contracts';
import { headers, type MsgHdrs } from '@nats-io/transport-node';

/**
 * The prefix of an encoded header name or value. NATS trims header values, forbids line breaks, and allows
 * only ASCII names, so other texts are encoded.
 */
const mark = '%%';
const plainName = /^[!-9;-~]+$/;
const oddValue = /\p{Cc}|\p{Cs}|^\s|\s$|^%%/u;

export function toNatsHeaders(wire: Headers, messageId: string): MsgHdrs {
  const made = headers();
  made.append('Nats-Msg-Id', encoded(messageId, !isPlainValue(messageId)));
  for (const [name, value] of Object.entries(wire))
    made.append(
      encoded(name, !plainName.test(name) || name.startsWith(mark)),
      encoded(value, !isPlainValue(value)),
    );
  return made;
}

/**
 * Reads the headers of a message. The last of repeated headers wins. Headers of the NATS server itself are
 * left out.
 */
export function fromNatsHeaders(given: MsgHdrs | undefined): Record<string, string> {
  const wire: Record<string, string> = {};
  for (const [name, values] of given ?? []) {
    if (!name.startsWith('Nats-')) wire[decoded(name)] = decoded(values.at(-1) ?? '');
  }
  return wire;
}

function isPlainValue(value: string): boolean {
  return !oddValue.test(value);
}

function encoded(text: string, isOdd: boolean): string {
  return isOdd ? mark + encodeURIComponent(text.toWellFormed()) : text;
}

function decoded(text: string): string {
  if (!text.startsWith(mark)) return text;
  try {
    return decodeURIComponent(text.slice(mark.length));
  } catch {
    return text;
  }
}

import type { Random } from 'holdfast';
import type { Live, LiveEvent } from '../watch/live.ts';
import type { WindowName } from '../watch/ring.ts';

/** While a slow reader has more unsent bytes than this, it gets only pings. */
const queuedBytesMax = 256 * 1024;
/** The page reconnects after this time. A random part is added, so that not all pages reconnect at once. */
const reconnectMs = 1000;

export function eventStream(live: Live, window: WindowName, request: Request, random: Random): Response {
  const lastId = Number(request.headers.get('last-event-id') ?? Number.NaN);
  const encoder = new TextEncoder();
  let remove: (() => void) | undefined;
  let isBehind = false;
  const stream = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const write = (text: string) => controller.enqueue(encoder.encode(text));
        write(`retry: ${Math.round(reconnectMs * (1 + random()))}\n\n`);
        write(textOf({ id: 0, type: 'hello', data: {} }));
        const send = (event: LiveEvent): boolean => {
          const isFull = (controller.desiredSize ?? 0) < 0;
          if (isFull && !isBehind) write(textOf({ id: event.id, type: 'behind', data: {} }));
          isBehind = isFull;
          if (isFull && event.type !== 'ping') return false;
          write(textOf(event));
          return true;
        };
        const off = live.add({ send, window }, Number.isNaN(lastId) ? undefined : lastId);
        const end = () => {
          off();
          request.signal.removeEventListener('abort', end);
        };
        remove = end;
        request.signal.addEventListener('abort', end);
      },
      cancel() {
        remove?.();
      },
    },
    new ByteLengthQueuingStrategy({ highWaterMark: queuedBytesMax }),
  );
  return new Response(stream, {
    headers: { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' },
  });
}

/** JSON contains no line breaks, so one line of data is enough. */
function textOf({ id, type, data }: LiveEvent): string {
  return `${id > 0 ? `id: ${id}\n` : ''}event: ${type}\ndata: ${JSON.stringify(data)}\n\n`;
}

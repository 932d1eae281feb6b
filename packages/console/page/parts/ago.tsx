import { span } from '../format.ts';
import { storeNow } from '../live.ts';

/** Shows how long ago something happened, by the store's clock. The exact time appears on hover and focus. */
export function Ago({ at, future = false }: { readonly at: number; readonly future?: boolean }) {
  const passed = storeNow() - at;
  const exact = new Date(at);
  const says =
    future || passed < 0
      ? passed >= -1000 && passed < 1000
        ? 'now'
        : `in ${span(Math.max(0, -passed))}`
      : passed < 1000
        ? 'now'
        : `${span(passed)} ago`;
  return (
    <time dateTime={exact.toISOString()} title={exact.toLocaleString()}>
      {says}
    </time>
  );
}

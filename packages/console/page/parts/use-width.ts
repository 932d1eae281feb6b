import type { RefObject } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

/** Measures the width of a box in pixels. A chart is drawn for exactly this width, and not scaled. */
export function useWidth(least = 240): [box: RefObject<HTMLDivElement | null>, width: number] {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(640);
  useEffect(() => {
    const watcher = new ResizeObserver(([entry]) => setWidth(Math.max(least, entry!.contentRect.width)));
    watcher.observe(box.current!);
    return () => watcher.disconnect();
  }, [least]);
  return [box, width];
}

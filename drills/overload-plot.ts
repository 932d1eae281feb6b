import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { SLICE_MS, type Slice } from './overload/clients.ts';
import { overloadPlot, type Panel } from './overload/plot.ts';
import { CAPACITY, run } from './overload.ts';

const file = path.join(import.meta.dirname, '..', 'docs', 'overload.svg');
const seconds = { calm: 5, overload: 15, after: 10, changed: 12 };

/** Draws docs/overload.svg anew: the same load with protection and without, and a capacity that changes. */
export async function drill(): Promise<Record<string, number>> {
  const panels: Panel[] = [];
  for (const [load, retrying] of [
    [3, false],
    [10, true],
  ] as const) {
    const phases = [
      { seconds: seconds.calm, perSecond: CAPACITY / 2 },
      { seconds: seconds.overload, perSecond: CAPACITY * load },
      { seconds: seconds.after, perSecond: CAPACITY / 2 },
    ];
    panels.push({
      title: `${load} times as much as it can do, for ${seconds.overload} s${retrying ? ', from clients that retry' : ''}`,
      capacity: [{ from: 0, perSecond: CAPACITY }],
      lines: [
        { name: 'protected', points: goodput(await run(true, retrying, phases)) },
        { name: 'bare', points: goodput(await run(false, retrying, phases)) },
      ],
    });
  }
  const phases = [{ seconds: 3 * seconds.changed, perSecond: 3 * CAPACITY }];
  const changes = [
    { afterSeconds: seconds.changed, perSecond: CAPACITY / 5 },
    { afterSeconds: 2 * seconds.changed, perSecond: CAPACITY },
  ];
  panels.push({
    title: 'what it can do changes, under three times as much',
    capacity: [
      { from: 0, perSecond: CAPACITY },
      ...changes.map(({ afterSeconds, perSecond }) => ({ from: afterSeconds, perSecond })),
    ],
    lines: [
      { name: 'protected', points: goodput(await run(true, false, phases, changes)) },
      { name: 'bare', points: goodput(await run(false, false, phases, changes)) },
    ],
  });
  await writeFile(file, overloadPlot(panels));
  return { panels: panels.length };
}

/** Requests served in time, a second, for each half second. */
function goodput(slices: readonly Slice[]): number[] {
  const together = 500 / SLICE_MS;
  const points: number[] = [];
  for (let at = 0; at + together <= slices.length; at += together) {
    const served = slices.slice(at, at + together).reduce((sum, slice) => sum + (slice?.served ?? 0), 0);
    points.push(served * 2);
  }
  return points;
}

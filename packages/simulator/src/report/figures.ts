import { show, showSeconds, showShare } from './markup.ts';

export interface ShownFigure {
  readonly key: string;
  readonly title: string;
  readonly says: string;
  readonly better: 'more' | 'less';
  show(figure: number | null | undefined): string;
}

export const callerFigures: readonly ShownFigure[] = [
  {
    key: 'success',
    title: 'success',
    says: 'share of the work that was done',
    better: 'more',
    show: showShare,
  },
  { key: 'goodput', title: 'goodput', says: 'done in a second', better: 'more', show },
  {
    key: 'multiplication',
    title: 'multiplication',
    says: 'attempts for each piece of work',
    better: 'less',
    show: (figure) => `${show(figure)}×`,
  },
  {
    key: 'peak',
    title: 'peak',
    says: 'most attempts in one second',
    better: 'less',
    show: (figure) => `${show(figure)}/s`,
  },
  { key: 'p50', title: 'p50', says: 'half of the customers waited less', better: 'less', show: showSeconds },
  { key: 'p99', title: 'p99', says: 'one in a hundred waited longer', better: 'less', show: showSeconds },
  {
    key: 'recovery',
    title: 'recovery',
    says: 'from the end of the trouble',
    better: 'less',
    show: showSeconds,
  },
  {
    key: 'metastable',
    title: 'stuck',
    says: 'stays down although the trouble is over',
    better: 'less',
    show: (figure) => (figure === null || figure === undefined ? '–' : figure >= 0.5 ? 'yes' : 'no'),
  },
  { key: 'wasted', title: 'wasted', says: 'work done for nobody', better: 'less', show: showShare },
  { key: 'duplicates', title: 'done twice', says: 'work that was done once more', better: 'less', show },
];

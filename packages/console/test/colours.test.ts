import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';

const states = ['ok', 'waiting', 'retrying', 'parked', 'refused'] as const;
const css = readFileSync(path.join(import.meta.dirname, '../page/tokens.css'), 'utf8');

type Colour = readonly [red: number, green: number, blue: number];
type Theme = 'light' | 'dark';

/** The value of a token in a theme, as linear light from 0 to 1. */
function token(name: string, theme: Theme): Colour {
  const found = new RegExp(
    `--${name}:\\s*light-dark\\(\\s*(#[0-9a-f]{3,6})\\s*,\\s*(#[0-9a-f]{3,6})\\s*\\)`,
  ).exec(css);
  if (!found) throw new Error(`There is no token --${name} with two hex colours in tokens.css.`);
  const hex = found[theme === 'light' ? 1 : 2]!.slice(1);
  const whole = hex.length === 3 ? [...hex].map((each) => each + each).join('') : hex;
  const [red, green, blue] = [0, 2, 4].map((at) =>
    linear(Number.parseInt(whole.slice(at, at + 2), 16) / 255),
  );
  return [red!, green!, blue!];
}

function linear(value: number): number {
  return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
}

/** The contrast of WCAG 2.2, from 1 to 21. */
function contrast(one: Colour, other: Colour): number {
  const [high, low] = [luminance(one), luminance(other)].sort((a, b) => b - a) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

function luminance([red, green, blue]: Colour): number {
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

type Matrix = readonly [Colour, Colour, Colour];

/** How colours look to those who lack one kind of cone (Machado, Oliveira and Fernandes 2009, severity 1). */
const sights: Readonly<Record<string, Matrix>> = {
  usual: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritanopia: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
};

function times(matrix: Matrix, [a, b, c]: Colour): Colour {
  return matrix.map(([x, y, z]) => x * a + y * b + z * c) as unknown as Colour;
}

/** OKLab, in which a distance is how different two colours look. */
function okLab(colour: Colour): Colour {
  const cones = times(
    [
      [0.4122214708, 0.5363325363, 0.0514459929],
      [0.2119034982, 0.6806995451, 0.1073969566],
      [0.0883024619, 0.2817188376, 0.6299787005],
    ],
    colour.map((each) => Math.min(1, Math.max(0, each))) as unknown as Colour,
  ).map(Math.cbrt) as unknown as Colour;
  return times(
    [
      [0.2104542553, 0.793617785, -0.0040720468],
      [1.9779984951, -2.428592205, 0.4505937099],
      [0.0259040371, 0.7827717662, -0.808675766],
    ],
    cones,
  );
}

const themes = ['light', 'dark'] as const;

test.each(themes)('words are readable on every surface in the %s theme', (theme) => {
  const surfaces = ['paper', 'sheet', 'well'];
  for (const word of ['ink', 'ink-2', 'ink-3', ...states.map((state) => `${state}-ink`)]) {
    const own = word.endsWith('-ink') ? [word.replace('-ink', '-wash')] : [];
    for (const surface of [...surfaces, ...own])
      expect(
        contrast(token(word, theme), token(surface, theme)),
        `${word} on ${surface}`,
      ).toBeGreaterThanOrEqual(4.5);
  }
});

test.each(themes)('marks and edges of fields are seen on a sheet in the %s theme', (theme) => {
  for (const mark of ['edge', ...states.map((state) => `${state}-fill`)])
    expect(contrast(token(mark, theme), token('sheet', theme)), mark).toBeGreaterThanOrEqual(3);
});

test.each(themes.flatMap((theme) => Object.keys(sights).map((sight) => [theme, sight] as const)))(
  'any two fills stay apart in the %s theme for %s sight',
  (theme, sight) => {
    for (const one of states)
      for (const other of states) {
        if (one >= other) continue;
        const [a, b] = [one, other].map((state) =>
          okLab(times(sights[sight]!, token(`${state}-fill`, theme))),
        );
        const distance = Math.hypot(...a!.map((each, index) => each - b![index]!));
        expect(distance, `${one} and ${other}`).toBeGreaterThanOrEqual(0.1);
      }
  },
);

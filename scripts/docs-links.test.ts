import { existsSync, globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { root } from './command.ts';

const pages = globSync(['*.md', 'docs/**/*.md', '{packages,engines,examples}/*/README.md'], { cwd: root });

/** The name that a heading has in a link, as GitHub makes it. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(/\s/g, '-');
}

function anchorsOf(text: string): Set<string> {
  const prose = text.replaceAll(/```[\s\S]*?```/g, '');
  return new Set([...prose.matchAll(/^#+ (.+)$/gm)].map(([, heading]) => anchorOf(heading!)));
}

test.each(pages)('every link of %s leads somewhere', (page) => {
  const text = readFileSync(path.join(root, page), 'utf8').replaceAll(/```[\s\S]*?```/g, '');
  const links = [...text.matchAll(/!?\[[^\]]*\]\(([^)\s]+)\)/g)].map(([, link]) => link!);
  const dead = links
    .filter((link) => !/^(https?:|mailto:)/.test(link))
    .filter((link) => {
      const [file = '', anchor] = link.split('#');
      const target = file === '' ? path.join(root, page) : path.join(root, path.dirname(page), file);
      if (!existsSync(target)) return true;
      if (anchor === undefined || !target.endsWith('.md')) return false;
      return !anchorsOf(readFileSync(target, 'utf8')).has(anchor);
    });
  expect(dead).toEqual([]);
});

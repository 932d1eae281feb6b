import { isNode, type Node, walk } from '../syntax.ts';
import { code, page, table } from './markdown.ts';
import { commentBefore, type SourceFile, sourceFile } from './source-files.ts';

const sources = [
  {
    title: '`subscribe` of `holdfast`',
    about: 'What policies do. Also on the channel `holdfast:notice` of `node:diagnostics_channel`.',
    file: 'packages/core/src/report/notices.ts',
    type: 'Notice',
  },
  {
    title: '`subscribeEvents` of `@holdfast/events`',
    about: 'What consumers do. Also on the channel `holdfast:event` of `node:diagnostics_channel`.',
    file: 'packages/events/src/consumer/event-notices.ts',
    type: 'EventNotice',
  },
];

interface Field {
  readonly name: string;
  readonly type: string;
  readonly comment: string;
}

export function noticesPage(): string {
  const parts = sources.map(({ title, about, file, type }) => partOf(title, about, sourceFile(file), type));
  return page(
    'Every notice',
    'A listener gets these, as typed objects; without a listener none is made.',
    parts,
  );
}

function partOf(title: string, about: string, file: SourceFile, typeName: string): string {
  const headers = interfacesIn(file);
  const used = new Set<string>();
  const rows = unionOf(file, typeName).flatMap((member) => {
    const [header = ''] = namesIn(member).filter((name) => headers.has(name));
    used.add(header);
    const fields = fieldsOf(file, objectIn(member));
    const types = fields.find(({ name }) => name === 'type')?.type.split('|') ?? [];
    const own = fields.filter(({ name }) => name !== 'type').map(fieldText);
    return types.map((each) => [
      code(each.replaceAll(/['\s]/g, '')),
      code(header),
      own.join('; '),
      commentBefore(file, member.start),
    ]);
  });
  const shared = [...headers].filter(
    ([name]) => used.has(name) || [...used].some((each) => headers.get(each)?.base === name),
  );
  const heads = shared.map(([name, { base, fields }]) => {
    const all = [...(base === undefined ? [] : [`all of ${code(base)}`]), ...fields.map(fieldText)];
    return `- ${code(name)}: ${all.join('; ')}`;
  });
  return [
    `## ${title}`,
    about,
    'Fields that several have:',
    heads.join('\n'),
    table(['type', 'has', 'and', 'when'], rows),
  ].join('\n\n');
}

function fieldText({ name, type, comment }: Field): string {
  return `${code(`${name}: ${type}`)}${comment === '' ? '' : ` (${comment.replace(/\.$/, '')})`}`;
}

function unionOf({ tree }: SourceFile, name: string): Node[] {
  let members: Node[] = [];
  walk(tree, (node) => {
    if (node.type !== 'TSTypeAliasDeclaration' || (node.id as Node).name !== name) return;
    members = (node.typeAnnotation as Node).types as Node[];
  });
  return members;
}

function interfacesIn(file: SourceFile): Map<string, { base: string | undefined; fields: Field[] }> {
  const found = new Map<string, { base: string | undefined; fields: Field[] }>();
  walk(file.tree, (node) => {
    if (node.type !== 'TSInterfaceDeclaration') return;
    const [base] = node.extends as Node[];
    found.set(String((node.id as Node).name), {
      base: base && String((base.expression as Node).name),
      fields: fieldsOf(file, node.body as Node),
    });
  });
  return found;
}

/** The names of the types that a member of the union is made of. */
function namesIn(member: Node): string[] {
  const names: string[] = [];
  walk(member, (node) => {
    if (node.type === 'TSTypeReference') names.push(String((node.typeName as Node).name));
  });
  return names;
}

function objectIn(member: Node): Node {
  let found: Node | undefined;
  walk(member, (node) => {
    if (node.type === 'TSTypeLiteral') found ??= node;
  });
  return found!;
}

function fieldsOf(file: SourceFile, node: Node): Field[] {
  const members = (node.members ?? node.body) as Node[];
  return members.flatMap((member) => {
    const annotation = member.typeAnnotation as Node | undefined;
    if (member.type !== 'TSPropertySignature' || !annotation || !isNode(annotation.typeAnnotation)) return [];
    const { start, end } = annotation.typeAnnotation as Node & { end: number };
    const name = `${String((member.key as Node).name)}${member.optional ? '?' : ''}`;
    return [{ name, type: file.text.slice(start, end), comment: commentBefore(file, member.start) }];
  });
}

import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type ParsedNode,
  parseAllDocuments,
} from 'yaml';
import { ConfigError, type Problem, problemsMax } from './config-error.ts';

const bytesMax = 1024 * 1024;
const depthMax = 64;
/**
 * Keys that are refused, because they have a special meaning in JavaScript or, for `<<`, in other YAML
 * parsers.
 */
const forbiddenKeys = new Set(['__proto__', 'constructor', 'prototype', '<<']);

/** The data of a parsed document, with the line and column of each field. */
export interface SourceDocument {
  readonly file: string;
  readonly data: unknown;
  /**
   * Returns a problem with the line and column of the field `path`, such as `backoff.base` or `retryOn[0]`.
   */
  problemAt(path: string, message: string): Problem;
}

interface Place {
  /** The offset of the value in the text. */
  readonly value: number;
  /** The offset of the value's key in the text. */
  readonly key: number;
}

/**
 * Parses YAML or JSON as plain data. Tags, anchors, merge keys and a second document are mistakes. Throws a
 * `ConfigError` that lists all mistakes.
 */
export function readDocument(text: string, file = 'document'): SourceDocument {
  if (text.length > bytesMax || new TextEncoder().encode(text).length > bytesMax) {
    throw new ConfigError(file, [
      { line: 1, column: 1, path: '', message: 'a document is at most 1 MiB long' },
    ]);
  }
  const lineCounter = new LineCounter();
  const documents = parseAllDocuments(text, {
    lineCounter,
    schema: 'core',
    version: '1.2',
    // Duplicate keys are checked below, because the parser's own check takes minutes for a long map.
    uniqueKeys: false,
    merge: false,
    customTags: [],
    prettyErrors: false,
  });
  const problems: Problem[] = [];
  const places = new Map<string, Place>();
  const complain = (offset: number, path: string, message: string) => {
    if (problems.length >= problemsMax) return;
    const { line, col } = lineCounter.linePos(offset);
    problems.push({ line, column: Math.max(1, col), path, message });
  };
  const [document, second] = Array.isArray(documents) ? documents : [];
  const mistakes = [...(document?.errors ?? []), ...(document?.warnings ?? [])];
  // If the parser ran out of stack, the document is nested too deep. The parser's other errors are only
  // consequences, so they are left out.
  const tooDeep = mistakes.find(({ message }) => message.includes('call stack'));
  if (tooDeep) complain(tooDeep.pos[0], '', `nested deeper than ${depthMax}`);
  else for (const { pos, message } of mistakes) complain(pos[0], '', sentence(message));
  if (second) complain(second.range[0], '', 'a file holds one document');
  const data = problems.length === 0 && document?.contents ? read(document.contents, '', 0) : undefined;
  if (problems.length > 0) throw new ConfigError(file, problems);

  function read(node: Node | ParsedNode | null, path: string, depth: number): unknown {
    if (node === null) return null;
    const offset = node.range?.[0] ?? 0;
    if (depth > depthMax) return void complain(offset, path, `nested deeper than ${depthMax}`);
    const wrong = beyondData(node);
    if (wrong) return void complain(offset, path, wrong);
    if (isScalar(node)) return typeof node.value === 'bigint' ? Number(node.value) : node.value;
    if (isSeq(node)) {
      return node.items.map((item, index) => {
        const itemPath = `${path}[${index}]`;
        const at = (item as Node | null)?.range?.[0] ?? offset;
        places.set(itemPath, { value: at, key: at });
        return read(item as Node, itemPath, depth + 1);
      });
    }
    if (!isMap(node)) return undefined;
    const object: Record<string, unknown> = {};
    for (const { key, value } of node.items) {
      const at = (key as Node).range?.[0] ?? offset;
      const name = isScalar(key) ? key.value : undefined;
      const wrong = beyondData(key as Node);
      if (wrong) {
        complain(at, path, wrong);
        continue;
      }
      if (typeof name !== 'string' && typeof name !== 'number') {
        complain(at, path, 'a key is a text');
        continue;
      }
      const keyPath = path === '' ? `${name}` : `${path}.${name}`;
      if (forbiddenKeys.has(`${name}`)) {
        complain(at, keyPath, 'this name is not allowed as a key');
        continue;
      }
      // 1 and "1" are two keys in YAML, but the same key in a JavaScript object.
      if (Object.hasOwn(object, name)) {
        complain(at, keyPath, 'this key stands here twice');
        continue;
      }
      places.set(keyPath, { key: at, value: (value as Node | null)?.range?.[0] ?? at });
      object[name] = read(value as Node, keyPath, depth + 1);
    }
    return object;
  }

  return {
    file,
    data,
    problemAt(path, message) {
      let known = path;
      // A missing field has no position in the text, so the position of its parent is used.
      while (known !== '' && !places.has(known)) known = known.replace(/(^|\.)[^.[]*$|\[\d+\]$/, '');
      const place = places.get(known);
      // For these messages, the key may be the mistake and not the value. So the problem points to the key.
      const isOfKey = /not an option|expected one of|did you mean/.test(message);
      const offset = isOfKey ? place?.key : place?.value;
      const { line, col } = lineCounter.linePos(offset ?? 0);
      return { line: Math.max(1, line), column: Math.max(1, col), path, message };
    },
  };
}

/**
 * Returns an error message for a tag, an anchor or an alias, which are more than plain data; otherwise
 * undefined.
 */
function beyondData(node: Node): string | undefined {
  if (isAlias(node)) return 'aliases are not followed';
  if (node.anchor !== undefined) return 'anchors have no use here';
  return node.tag === undefined ? undefined : 'tags have no use here';
}

function sentence(message: string): string {
  return message.replace(/\s*\n[\s\S]*$/, '').replace(/[.:]$/, '');
}

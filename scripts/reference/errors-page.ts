import { errorAdvice } from './error-advice.ts';
import { type ErrorCode, errorCodes } from './error-codes.ts';
import { code, page, table } from './markdown.ts';

export function errorsPage(): string {
  const byPackage = [...Map.groupBy(errorCodes(), (each) => each.package)].toSorted(([a], [b]) =>
    a === 'holdfast' ? -1 : b === 'holdfast' ? 1 : a < b ? -1 : 1,
  );
  return page(
    'Every error code',
    'Errors of Holdfast have a `code`: compare it instead of the class, because two copies of a package can be installed. ' +
      'What your own function throws passes through a policy untouched and is not on this page. [Why it stopped](../stop-reasons.md) has the reasons of a story.',
    byPackage.map(
      ([name, codes]) => `## ${name}\n\n${table(['code', 'class', 'when', 'what to do'], codes.map(rowOf))}`,
    ),
  );
}

function rowOf(each: ErrorCode): string[] {
  const { when = each.comment, todo = '' } = errorAdvice[each.code] ?? {};
  return [
    code(each.code),
    each.class === 'warning' ? 'a warning of the process' : code(each.class),
    when,
    todo,
  ];
}

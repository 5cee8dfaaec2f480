/** Finds the operators of a PromQL expression and their operands. */

/** Operands of a binary operator, which is between them with its `on (…)` or `bool`. */
interface Operation {
  readonly left: Span;
  readonly right: Span;
}

/** Start and end offset in the expression. */
interface Span {
  readonly start: number;
  readonly end: number;
}

const PRECEDENCE: Readonly<Record<string, number>> = {
  or: 1,
  and: 2,
  unless: 2,
  '==': 3,
  '!=': 3,
  '>': 3,
  '<': 3,
  '>=': 3,
  '<=': 3,
  '+': 4,
  '-': 4,
  '*': 5,
  '/': 5,
};

const OPERATOR = String.raw`\s*(?<=\s)(?:or|and|unless|[=!<>]=|[-+*/<>])(?: on \([^)]*\)| bool)?(?=\s)`;

/** Tokens. Strings, braces, ranges and label lists are matched in order to be skipped. */
const TOKEN = new RegExp(
  String.raw`"[^"]*"|\{[^}]*\}|\[[^\]]*\]|\bby \([^)]*\)|[()]|${OPERATOR}`,
  'g',
);

/** Returns every binary operation of an expression. Operators must be surrounded by white space. */
export function operationsOf(expression: string): readonly Operation[] {
  const operations: Operation[] = [];
  const groups: { start: number; operators: (Span & { name: string })[] }[] = [];
  const open = (start: number) => groups.push({ start, operators: [] });
  const close = (end: number) => {
    const group = groups.pop();
    if (group !== undefined)
      operations.push(...operationsOfGroup(group.operators, group.start, end));
  };
  open(0);
  for (const match of expression.matchAll(TOKEN)) {
    const [text] = match;
    const name = text.trim().split(' ')[0] ?? '';
    if (text === '(') open(match.index + 1);
    else if (text === ')') close(match.index);
    else if (name in PRECEDENCE) {
      groups.at(-1)?.operators.push({ start: match.index, end: match.index + text.length, name });
    }
  }
  close(expression.length);
  return operations;
}

function operationsOfGroup(
  operators: readonly (Span & { readonly name: string })[],
  start: number,
  end: number,
): readonly Operation[] {
  const rank = (name: string) => PRECEDENCE[name] ?? 0;
  return operators.map(({ name, ...operator }, index) => {
    const before = operators.slice(0, index).findLast((other) => rank(other.name) < rank(name));
    const after = operators.slice(index + 1).find((other) => rank(other.name) <= rank(name));
    return {
      left: { start: before?.end ?? start, end: operator.start },
      right: { start: operator.end, end: after?.start ?? end },
    };
  });
}

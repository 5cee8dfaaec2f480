import type { SyntaxNode, Tree } from '@lezer/common';
import { parser } from '@prometheus-io/lezer-promql';

/** Returns the labels of a metric's series; undefined if there is no such metric. */
export type LabelsOf = (metric: string) => ReadonlySet<string> | undefined;

export interface Selector {
  readonly metric: string;
  /** Labels that its matchers name. */
  readonly labels: readonly string[];
  /** The innermost aggregation around it, as in `sum`; undefined if there is none. */
  readonly aggregation: string | undefined;
}

/**
 * Returns every selector of a query, except those that match the names of several metrics.
 * @throws {Error} on a syntax error, or a selector without the name of a metric
 */
export function selectorsOf(query: string): readonly Selector[] {
  const selectors: Selector[] = [];
  parse(query).iterate({
    enter: ({ name, node }) => {
      if (name !== 'VectorSelector') return;
      const metric = textOf(query, node.getChild('Identifier'));
      const matchers = node.getChild('LabelMatchers')?.getChildren('UnquotedLabelMatcher') ?? [];
      const labels = matchers.map((matcher) => textOf(query, matcher.getChild('LabelName')));
      if (metric === '' && labels.includes('__name__')) return;
      if (metric === '') throw new Error(`a selector without a metric in ${query}`);
      selectors.push({
        metric,
        labels,
        aggregation: textOf(query, aggregationAround(node)) || undefined,
      });
    },
  });
  return selectors;
}

/** Returns the labels that a query aggregates or matches by, each once. @throws {Error} on a syntax error */
export function groupingLabelsOf(query: string): readonly string[] {
  const labels = new Set<string>();
  parse(query).iterate({
    enter: ({ name, node }) => {
      if (name === 'GroupingLabels') for (const label of namesIn(query, node)) labels.add(label);
    },
  });
  return [...labels];
}

/**
 * Returns the labels of a query's result; a scalar has none.
 * @throws {Error} on a syntax error, an unknown metric, an unknown label in a matcher, a grouping or `on`, and operands that
 * never match because their labels differ
 */
export function resultLabels(query: string, labelsOf: LabelsOf): ReadonlySet<string> {
  for (const { metric, labels } of selectorsOf(query)) {
    const known = labelsOf(metric);
    if (known === undefined) throw new Error(`no metric ${metric} in ${query}`);
    requireAll(labels, known, metric);
  }
  return labelsAt(parse(query).topNode, { query, labelsOf }) ?? new Set();
}

function parse(query: string): Tree {
  const tree = parser.parse(query);
  tree.iterate({
    enter: ({ type, from }) => {
      if (type.isError) throw new Error(`syntax error before "${query.slice(from)}" in ${query}`);
    },
  });
  return tree;
}

function aggregationAround(node: SyntaxNode): SyntaxNode | null {
  let outer = node.parent;
  while (outer !== null && outer.name !== 'AggregateExpr') outer = outer.parent;
  return outer?.getChild('AggregateOp') ?? null;
}

function requireAll(labels: Iterable<string>, known: ReadonlySet<string>, where: string): void {
  for (const label of labels) {
    if (!known.has(label)) throw new Error(`no label ${label} in ${where}`);
  }
}

/** Types of nodes that are expressions. */
const EXPRESSIONS = new Set([
  'AggregateExpr',
  'BinaryExpr',
  'FunctionCall',
  'MatrixSelector',
  'NumberDurationLiteral',
  'OffsetExpr',
  'ParenExpr',
  'StepInvariantExpr',
  'StringLiteral',
  'SubqueryExpr',
  'UnaryExpr',
  'VectorSelector',
]);

function expressionsIn(node: SyntaxNode | null): readonly SyntaxNode[] {
  const found: SyntaxNode[] = [];
  for (let child = node?.firstChild ?? null; child !== null; child = child.nextSibling) {
    if (EXPRESSIONS.has(child.name)) found.push(child);
  }
  return found;
}

interface Context {
  readonly query: string;
  readonly labelsOf: LabelsOf;
}

/** Undefined for scalars and strings. */
type Labels = ReadonlySet<string> | undefined;

function labelsAt(node: SyntaxNode | undefined, context: Context): Labels {
  if (node === undefined) return undefined;
  switch (node.name) {
    case 'NumberDurationLiteral':
    case 'StringLiteral':
      return undefined;
    case 'VectorSelector': {
      const metric = textOf(context.query, node.getChild('Identifier'));
      // Metrics that a matcher selects by name have the project label in common.
      return metric === '' ? new Set(['project']) : context.labelsOf(metric);
    }
    case 'AggregateExpr':
      return labelsOfAggregation(node, context);
    case 'FunctionCall':
      return labelsOfCall(node, context);
    case 'BinaryExpr':
      return labelsOfOperation(node, context);
    default:
      return labelsAt(expressionsIn(node)[0], context);
  }
}

function labelsOfAggregation(node: SyntaxNode, context: Context): Labels {
  const operand = labelsAt(expressionsIn(node.getChild('FunctionCallBody')).at(-1), context);
  const text = textOf(context.query, node);
  if (operand === undefined) throw new Error(`nothing to aggregate in ${text}`);
  const modifier = node.getChild('AggregateModifier');
  const names = namesIn(context.query, modifier?.getChild('GroupingLabels'));
  const name = textOf(context.query, node.getChild('AggregateOp'));
  if (name === 'topk' || name === 'bottomk') return operand;
  requireAll(names, operand, text);
  return modifier?.getChild('Without') ? operand.difference(names) : names;
}

function labelsOfCall(node: SyntaxNode, context: Context): Labels {
  const text = textOf(context.query, node);
  const args = expressionsIn(node.getChild('FunctionCallBody'));
  const operand = args.map((arg) => labelsAt(arg, context)).find((labels) => labels !== undefined);
  switch (textOf(context.query, node.getChild('FunctionIdentifier'))) {
    case 'scalar':
      return undefined;
    case 'vector':
      return new Set();
    case 'absent':
    case 'absent_over_time':
      return new Set(selectorsOf(text).flatMap(({ labels }) => labels));
    case 'histogram_quantile':
      requireAll(['le'], operand ?? new Set(), text);
      return operand?.difference(new Set(['le']));
    case 'label_replace':
    case 'label_join':
      return operand?.union(new Set([textOf(context.query, args[1]).slice(1, -1)]));
    default:
      return operand;
  }
}

function labelsOfOperation(node: SyntaxNode, context: Context): Labels {
  const [left, right] = expressionsIn(node).map((operand) => labelsAt(operand, context));
  if (left === undefined || right === undefined) return left ?? right;
  const text = textOf(context.query, node);
  const clause = node.getChild('MatchingModifierClause');
  const [matching, included] = clause?.getChildren('GroupingLabels') ?? [];
  const names = namesIn(context.query, matching);
  const isOn = clause?.getChild('On') != null;
  if (isOn) for (const side of [left, right]) requireAll(names, side, text);
  if (node.getChild('Or')) return left.union(right);

  const key = isOn ? names : left.difference(names);
  const otherKey = isOn ? names : right.difference(names);
  if (key.symmetricDifference(otherKey).size > 0) {
    throw new Error(`{${[...key].join()}} never matches {${[...otherKey].join()}} in ${text}`);
  }
  if (node.getChild('And') || node.getChild('Unless')) return left;
  if (clause?.getChild('GroupLeft')) return left.union(namesIn(context.query, included));
  if (clause?.getChild('GroupRight')) return right.union(namesIn(context.query, included));
  return key;
}

function namesIn(query: string, grouping: SyntaxNode | null | undefined): ReadonlySet<string> {
  return new Set(grouping?.getChildren('LabelName').map((node) => textOf(query, node)));
}

function textOf(query: string, node: SyntaxNode | null | undefined): string {
  return node ? query.slice(node.from, node.to) : '';
}

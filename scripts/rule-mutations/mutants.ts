import { isMap, isScalar, isSeq, parseDocument, type YAMLMap } from 'yaml';
import { operationsOf } from './promql.ts';

export interface Mutant {
  /** Name of the alert or recorded series. */
  readonly rule: string;
  readonly change: string;
  /** The whole rules file with this one change. */
  readonly text: string;
}

interface Edit {
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
}

/** Replacements of words. */
const WORDS: Readonly<Record<string, readonly string[]>> = {
  last_over_time: ['min_over_time', 'max_over_time'],
  min_over_time: ['max_over_time', 'last_over_time'],
  max_over_time: ['min_over_time', 'last_over_time'],
  increase: ['delta'],
  changes: ['resets'],
  floor: ['ceil', ''],
  absent: ['present_over_time', ''],
  max: ['min', 'sum'],
  sum: ['max', 'count'],
  unless: ['and', 'or'],
  and: ['unless', 'or'],
  or: ['and', 'unless'],
};

/** Replacements of operators. */
const OPERATORS: Readonly<Record<string, readonly string[]>> = {
  '>=': ['>', '<'],
  '<=': ['<', '>'],
  '==': ['!='],
  '!=': ['=='],
  '>': ['>=', '<'],
  '<': ['<=', '>'],
  '+': ['-'],
  '-': ['+'],
  '*': ['/'],
  '/': ['*'],
};

/** Returns every mutant of a rules file, including invalid ones. */
export function mutantsOf(text: string): readonly Mutant[] {
  const groups = parseDocument(text).get('groups');
  const rules = isSeq<YAMLMap>(groups)
    ? groups.items.flatMap((group) => {
        const items = group.get('rules');
        return isSeq<YAMLMap>(items) ? items.items : [];
      })
    : [];
  return rules.flatMap((rule) => {
    const name = String(rule.get('alert') ?? rule.get('record'));
    return editsOf(rule, text).map(({ start, end, replacement }) => ({
      rule: name,
      change: `${brief(text.slice(start, end))} -> ${brief(replacement)} at ${line(text, start)}`,
      text: text.slice(0, start) + replacement + text.slice(end),
    }));
  });
}

function editsOf(rule: YAMLMap, text: string): readonly Edit[] {
  const edits: Edit[] = [];
  for (const { key, value } of rule.items) {
    const field = String(key);
    const range = isScalar(value) || isMap(value) ? value.range : undefined;
    if (range == null) continue;
    const [start, end] = range;
    const source = text.slice(start, end);
    if (field === 'expr') {
      const header = /^[|>]-?\n/.exec(source)?.[0].length ?? 0;
      edits.push(
        ...editsOfExpression(source.slice(header)).map((edit) => shift(edit, start + header)),
      );
    }
    if (field === 'for' || field === 'keep_firing_for') {
      edits.push(...waitsBeside(source).map((replacement) => ({ start, end, replacement })));
    }
    // Labels and annotations.
    for (const item of isMap(value) ? value.items : []) {
      if (!isScalar(item.value) || item.value.range == null) continue;
      const [from, to] = item.value.range;
      edits.push({ start: from, end: to, replacement: 'other\n' });
    }
  }
  return edits;
}

function editsOfExpression(expression: string): readonly Edit[] {
  const edits: Edit[] = [];
  const replace = (pattern: RegExp, replacements: (match: string) => readonly string[]) => {
    for (const match of expression.matchAll(pattern)) {
      const start = match.index;
      const end = start + match[0].length;
      for (const replacement of replacements(match[0])) edits.push({ start, end, replacement });
    }
  };
  replace(/(?<![\w:])\w+(?![\w:])/g, (word) => WORDS[word] ?? []);
  replace(/(?<=\s)[-+*/<>=!]=?(?=\s)/g, (operator) => OPERATORS[operator] ?? []);
  replace(/ bool(?= )/g, () => ['']);
  replace(/(?<![\w.:"\][-])\d+(?:\.\d+)?(?![\w.\]])/g, (number) =>
    number.includes('.')
      ? [String(Number(number) + 0.01), String(Number(number) - 0.01)]
      : [String(Number(number) + 1), String(Number(number) - 1)],
  );
  replace(/(?<=\[)\d+[mhd](?=\])/g, (duration) =>
    [0.7, 1.3].map((factor) => `${Math.round(seconds(duration) * factor)}s`),
  );
  replace(/\b\w+=~?"[^"]*"/g, (matcher) => {
    const [, label = '', operator = '', value = ''] = /^(\w+)(=~?)"(.*)"$/.exec(matcher) ?? [];
    return [
      '',
      `${label}${operator.replace('=', operator === '=' ? '!=' : '!')}"${value}"`,
      ...(operator === '=~' ? value.split('|').map((one) => `${label}="${one}"`) : []),
    ];
  });
  replace(/(?<=\bby \()[^)]*(?=\))/g, (labels) => {
    const names = labels.split(', ');
    return [
      ...(names.includes('instance') ? [] : [`${labels}, instance`]),
      ...names.map((name) => names.filter((other) => other !== name).join(', ')),
    ];
  });
  replace(/ on \([^)]*\)/g, (on) => (on === ' on ()' ? [''] : ['', ' on ()']));
  for (const { left, right } of operationsOf(expression)) {
    for (const kept of [left, right]) {
      const replacement = expression.slice(kept.start, kept.end);
      edits.push({ start: left.start, end: right.end, replacement });
    }
  }
  return edits;
}

function waitsBeside(duration: string): readonly string[] {
  const value = seconds(duration.trim());
  return value === 0 ? ['1m\n'] : [`${value - 60}s\n`, `${value + 60}s\n`];
}

function seconds(duration: string): number {
  const unit = { s: 1, m: 60, h: 3600, d: 86_400 }[duration.at(-1) ?? ''] ?? Number.NaN;
  return Number.parseInt(duration, 10) * unit;
}

function shift({ start, end, replacement }: Edit, by: number): Edit {
  return { start: start + by, end: end + by, replacement };
}

function line(text: string, offset: number): string {
  return `line ${text.slice(0, offset).split('\n').length}`;
}

function brief(text: string): string {
  return text.trim().replaceAll(/\s+/g, ' ') || 'nothing';
}

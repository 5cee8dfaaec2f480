import { reached, type Figures, type Goal, type Result } from '../result.ts';

function figure(metric: keyof Figures, value: number): string {
  return metric.endsWith('Bytes') ? `${number(value / 1e6)} MB` : `${number(value)} ms`;
}

const WORDS: Readonly<Record<keyof Figures, string>> = {
  cpuMs: 'CPU',
  wallMs: 'wall time',
  blockMs: 'longest block',
  worstBlockMs: 'worst block',
  peakBytes: 'peak memory',
  restBytes: 'memory',
};

export interface Verdict {
  readonly met: boolean;
  /** Name of the figure, such as `wall time, compiled`. */
  readonly what: string;
  readonly reached: string;
  readonly goal: string;
}

/** Compares a result with the goals of its row that were measured. */
export function verdictsOn({ goals, figures }: Result): readonly Verdict[] {
  return goals.flatMap((goal) => {
    const value = reached(goal, figures);
    if (value === undefined) return [];
    return {
      met: value <= goal.most,
      what: WORDS[goal.metric] + (goal.of === undefined ? '' : `, ${goal.of}`),
      reached: inWords(goal, value),
      goal: `≤ ${inWords(goal, goal.most)}`,
    };
  });
}

function inWords({ metric, over, above }: Goal, value: number): string {
  if (over !== undefined) return `${value.toFixed(value < 10 ? 2 : 1)} × ${over}`;
  return figure(metric, value) + (above === undefined ? '' : ` above ${above}`);
}

export function sizeOf({ projects, prompts, encoding }: Omit<Result, 'figures'>): string {
  const counts = [
    ...(projects === 1 ? [] : [`${projects.toLocaleString('en')} projects`]),
    ...(prompts === 0 ? [] : [`${prompts.toLocaleString('en')} prompts`]),
  ];
  const what = counts.join(' × ');
  return encoding === 'identity' ? what : `${what}, ${encoding}`;
}

/** Rounds to about three digits. */
export function number(value: number): string {
  return value < 9.995 ? value.toFixed(2) : value.toFixed(value < 99.95 ? 1 : 0);
}

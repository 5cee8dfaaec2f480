import type { DurationCount } from './durations.ts';
import {
  DEFAULT_LIMIT_MS,
  learnLimit,
  typicalDuration,
  type LimitContext,
} from './learned-limit.ts';
import type { UnfinishedStatus } from './status.ts';

/** How long a prompt may stay in a status: a time in ms, learned from the project's own prompts, or without a limit. */
export type ConfiguredLimit = number | 'auto' | 'off';

/** What is expected of the prompts of a project (docs/configuration.md). */
export interface Expectations {
  readonly limits: Readonly<Record<UnfinishedStatus, ConfiguredLimit>>;
  /** Share of the prompts that finish which may fail; undefined without an objective. */
  readonly maxFailureRatio: number | undefined;
}

/** Where a limit comes from; `default` applies until enough durations are known to learn one. */
export const LIMIT_SOURCES = ['learned', 'configured', 'default', 'off'] as const;
type LimitSource = (typeof LIMIT_SOURCES)[number];

/** What is expected of the prompts of a project in one status. */
export interface StateExpectation {
  /** How long a prompt may stay in the status, ms; undefined without a limit. */
  readonly limitMs: number | undefined;
  readonly source: LimitSource;
  /** Median time in the status over the last 30 days, ms; undefined while too few durations are known. */
  readonly typicalMs: number | undefined;
}

/** What the durations of a project's prompts in one status show. */
export interface LearnedState {
  /** The limit without a configured one, ms. */
  readonly limitMs: number;
  readonly source: 'learned' | 'default';
  /** As in {@link StateExpectation}. */
  readonly typicalMs: number | undefined;
}

/** Learns from the durations of the last 30 days and of today. */
export function learn(counts: readonly DurationCount[], context: LimitContext): LearnedState {
  const typicalMs = typicalDuration(counts, context.now);
  const limitMs = learnLimit(counts, context);
  return limitMs === undefined
    ? { limitMs: DEFAULT_LIMIT_MS[context.status], source: 'default', typicalMs }
    : { limitMs, source: 'learned', typicalMs };
}

/** Returns what is expected in a status, given the configured limit and what was learned. */
export function expectationOf(
  configured: ConfiguredLimit,
  learned: LearnedState,
): StateExpectation {
  const { typicalMs } = learned;
  if (configured === 'off') return { limitMs: undefined, source: 'off', typicalMs };
  return configured === 'auto'
    ? { limitMs: learned.limitMs, source: learned.source, typicalMs }
    : { limitMs: configured, source: 'configured', typicalMs };
}

/** Whether a prompt that has been in the status for so long, in ms, is stuck: beyond the limit. */
export function isStuck(waitingMs: number, expectation: StateExpectation | undefined): boolean {
  return expectation?.limitMs !== undefined && waitingMs > expectation.limitMs;
}

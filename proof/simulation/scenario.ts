import type { Config } from '../../src/config/config.ts';
import type { Receiver } from '../../src/domain/receiver.ts';

export const KEY = 'simulated-service-key';
export const MISSING_AFTER = 3;

/** One daemon with SQLite, or three workers with PostgreSQL. */
export const PARTS = ['daemon', 'workers'] as const;
export type Part = (typeof PARTS)[number];

/** Simulated time of a run. */
export const HOURS = 4;
const MAX_PROJECTS = 20;
const FEW_PROJECTS = 3;

/** Returns the number of projects in the run of a seed, and whether it has no faults. */
export function sizeOf(seed: number): { readonly projects: number; readonly isQuiet: boolean } {
  return { projects: seed % 5 === 0 ? MAX_PROJECTS : FEW_PROJECTS, isQuiet: seed % 16 === 0 };
}

/** Lengths of time, ms. */
export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

export const JITTER_MS = 5 * SECOND;
export const MAX_REQUESTS_PER_SECOND = 3;

export interface Project {
  readonly id: string;
  readonly schedule: string;
  /** Interval of the schedule, ms. Its runs are at the multiples. */
  readonly periodMs: number;
}

export const ALL_PROJECTS: readonly Project[] = [
  { id: 'alpha', schedule: '*/5 * * * *', periodMs: 5 * MINUTE },
  { id: 'beta', schedule: '*/30 * * * * *', periodMs: 30 * SECOND },
  { id: 'gamma', schedule: '*/15 * * * *', periodMs: 15 * MINUTE },
  ...Array.from({ length: MAX_PROJECTS - 3 }, (_, n) => {
    const minutes = [5, 10, 15][n % 3] ?? 5;
    return { id: `p${n}`, schedule: `*/${minutes} * * * *`, periodMs: minutes * MINUTE };
  }),
];

const told = { teams: undefined, projects: undefined };
const webhook = {
  type: 'webhook',
  url: { url: 'http://receiver.test' },
  secret: undefined,
} as const;
export const RECEIVERS: readonly Receiver[] = [
  { ...told, ...webhook, name: 'chat', on: ['failed', 'completed', 'finished'] },
  { ...told, ...webhook, name: 'pager', on: ['failed', 'stuck', 'down'] },
];

export function configOf(isShared: boolean, projects: readonly Project[]): Config {
  const expect = { limits: { PENDING: 'auto', RUNNING: 'auto' }, maxFailureRatio: 0.2 } as const;
  return {
    file: '/simulated.yaml',
    sources: [],
    projectsFiles: [],
    service: {
      baseUrl: 'http://service.test',
      timeoutMs: 10 * SECOND,
      retries: 2,
      maxConcurrency: 4,
      maxRequestsPerSecond: MAX_REQUESTS_PER_SECOND,
      maxResponseBytes: 10_000_000,
      maxItems: 10_000,
      authorities: undefined,
      proxyUrl: undefined,
    },
    promptUrl: undefined,
    jitterMs: JITTER_MS,
    missingAfter: MISSING_AFTER,
    projects: projects.map(({ id, schedule }) => ({
      id,
      schedule,
      idleSchedule: undefined,
      pauses: { isPaused: false, maintenance: [] },
      timezone: 'UTC',
      key: { env: 'KEY', value: KEY },
      datasets: false,
      team: '',
      expect,
    })),
    store: isShared
      ? { postgresUrl: { env: 'URL', value: '' }, leaseMs: 0, retentionMs: 400 * DAY }
      : { path: '', retentionMs: 400 * DAY },
    web: {
      host: '127.0.0.1',
      port: 0,
      allowedHosts: [],
      externalUrl: undefined,
      enableLifecycle: false,
      configFile: undefined,
    },
    metrics: { experiments: 0 },
    log: { level: 'info' },
    heartbeat: undefined,
    notify: RECEIVERS,
  };
}

import type { Goal } from '../result.ts';
import { changing, row, steady } from './polls.ts';
import type { Row } from './row.ts';

const GOALS: readonly Goal[] = [
  { metric: 'cpuMs', over: 'join', most: 4 },
  { metric: 'blockMs', most: 15 },
];
const PROJECTS = { projects: 1000, prompts: 100 };
const SCRAPES = 6;

export const SCRAPE_ROWS: readonly Row[] = [
  row({
    name: 'scrape',
    title: 'a scrape, every project polled since the last one',
    contenders: ['join', 'evalwatch scrape'],
    goals: GOALS.map((goal) => ({ ...goal, of: 'evalwatch scrape' })),
    scenarios: () => [steady(PROJECTS, SCRAPES)],
  }),
  row({
    name: 'scrape-changed',
    title: 'a scrape, a prompt of every project changed since the last one',
    contenders: ['join', 'evalwatch scrape'],
    goals: GOALS.map((goal) => ({ ...goal, of: 'evalwatch scrape' })),
    scenarios: () => [changing(steady(PROJECTS, SCRAPES))],
  }),
];

import { type Backend, BEFORE_ARRIVAL_MS } from '../backend.ts';
import type { Course } from '../course.ts';
import type { Endings } from '../endings.ts';
import type { Host, Life } from '../hosts.ts';
import type { Watch } from '../watch.ts';
import type { Conditions } from './conditions.ts';

/** Probability that the store fails now and then while a process reloads. */
const FAILS_AT_RELOAD = 0.1;

/** Phases in which the store fails, or is away. */
export interface Outages {
  /** Makes the store fail now and then, or go away with the next commit. May restart this process, or that of the commit. */
  worsenStore(own: Life): void;
  /** Called when a commit of this process is sent. */
  committing(own: Life): void;
  reloading(own: Life): void;
  /** Keeps the database from going away at the next commit. */
  end(): void;
}

export interface OutagesOptions {
  readonly course: Course;
  readonly backend: Pick<Backend, 'loseStatements'>;
  readonly hosts: readonly Host[];
  readonly watch: Pick<Watch, 'troubled'>;
  readonly conditions: Pick<Conditions, 'troubleStore'>;
  readonly endings: Pick<Endings, 'restartSoon'>;
}

export function createOutages(options: OutagesOptions): Outages {
  const { course, backend, hosts, watch, conditions, endings } = options;
  const { kernel } = course;
  /** Whether the database goes away once a commit is on its way. */
  let isAboutToBreak = false;

  /** Makes the database go away: the outcome of the statements under way is unknown. */
  function breakOff(own: Life): void {
    if (course.isCalm()) return;
    course.act('database away');
    backend.loseStatements?.();
    for (const { life } of hosts) if (life !== undefined) watch.troubled(life.machine.name);
    conditions.troubleStore({ fails: 1, slow: 0 }, () => endings.restartSoon(own));
    endings.restartSoon(own, 0.5);
  }

  function fail(own: Life): void {
    course.act('bad store');
    endings.restartSoon(own);
    const trouble = { fails: kernel.between(0, 1), slow: kernel.between(0, 0.5) };
    conditions.troubleStore(trouble, () => endings.restartSoon(own));
  }

  return {
    worsenStore: (own) => {
      if (course.isShared && kernel.chance(0.3)) isAboutToBreak = true;
      else fail(own);
    },
    reloading: (own) => {
      if (!course.isCalm() && kernel.chance(FAILS_AT_RELOAD)) fail(own);
    },
    committing: (own) => {
      if (isAboutToBreak) kernel.after(kernel.between(BEFORE_ARRIVAL_MS, 4), () => breakOff(own));
      isAboutToBreak = false;
    },
    end: () => {
      isAboutToBreak = false;
    },
  };
}

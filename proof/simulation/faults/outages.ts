import { type Backend, BEFORE_ARRIVAL_MS } from '../backend.ts';
import type { Course } from '../course.ts';
import type { Endings } from '../endings.ts';
import type { Host, Life } from '../hosts.ts';
import type { Watch } from '../watch.ts';
import type { Conditions } from './conditions.ts';

/** How probable it is that the store fails now and then while a process reloads. */
const FAILS_AT_RELOAD = 0.1;

/** Phases in which the store fails, or is away. */
export interface Outages {
  /** The store gets bad, or goes away with the next commit. Someone may restart this process because of it. */
  worsenStore(own: Life): void;
  /** A commit of this process is on its way. */
  committing(own: Life): void;
  /** This process reloads its configuration. */
  reloading(own: Life): void;
  /** From now on, the database does not go away. */
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

  /** The database goes away, and nobody learns what became of the statements that were under way. */
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
      if (course.has('bad store') && !course.isCalm() && kernel.chance(FAILS_AT_RELOAD)) fail(own);
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

import type { FinishedPoll } from '../../monitor/events.ts';
import type { Clock } from '../../monitor/ports/clock.ts';
import type { PollRun } from '../../monitor/ports/watched-project.ts';

export const MINUTE_MS = 60_000;

/** Why a due poll was not made (docs/specification.md#heartbeat). */
export type Gap = 'skipped' | 'missed' | 'late' | 'stuck' | 'unfinished' | 'store' | 'lease_lost';

/** Finds the minutes in which every due poll was made. */
export interface Minutes {
  /** Counts a poll of a schedule in the current minute, for as long as `isWanted` returns true. */
  watch(
    run: Pick<PollRun, 'dueAt'>,
    poll: Promise<FinishedPoll | undefined>,
    isWanted: () => boolean,
  ): void;
  /** Records that a due poll of the current minute was not made. */
  fail(gap: Gap): void;
  /** Ends the current minute and begins the next one. */
  end(): void;
}

interface WatchedPoll {
  readonly isWanted: () => boolean;
}

interface Minute {
  /** Polls of this minute that still run. */
  readonly pending: Set<WatchedPoll>;
  /** Polls of this minute that ended without an outcome. */
  readonly unfinished: WatchedPoll[];
  gap: Gap | undefined;
  isOver: boolean;
  isJudged: boolean;
}

/**
 * Calls `onVerdict` once for each minute: at its end if it has a gap by then, otherwise when its last wanted poll has ended,
 * at the latest at the end of the next minute. A wanted poll that still runs then is a gap.
 */
export function createMinutes(clock: Clock, onVerdict: (gap: Gap | undefined) => void): Minutes {
  let current = newMinute();
  /** The minute before, whose last polls may still run. */
  let last: Minute | undefined;
  /** Polls of earlier minutes that still run. */
  const older = new Set<WatchedPoll>();

  function judge(minute: Minute): void {
    const { isOver, isJudged, pending, unfinished } = minute;
    if (!isOver || isJudged) return;
    // Decided only now: the poll of a project that a reload removes can end before the reload does.
    const gap = minute.gap ?? (hasWanted(unfinished) ? 'unfinished' : undefined);
    if (gap === undefined && hasWanted(pending)) return;
    minute.isJudged = true;
    onVerdict(gap);
  }

  return {
    watch: ({ dueAt }, poll, isWanted) => {
      const minute = current;
      const watched = { isWanted };
      const ended = (gap: Gap | undefined) => {
        minute.pending.delete(watched);
        older.delete(watched);
        if (gap === 'unfinished') minute.unfinished.push(watched);
        else if (isWanted()) minute.gap ??= gap;
        judge(minute);
      };
      if (clock.now() - dueAt >= MINUTE_MS) minute.gap ??= 'late';
      minute.pending.add(watched);
      poll.then(
        (finished) => ended(gapOf(finished)),
        // A bug, which the scheduler reports.
        () => ended('unfinished'),
      );
    },
    fail: (gap) => {
      current.gap ??= gap;
    },
    end: () => {
      if (hasWanted(older)) {
        current.gap ??= 'stuck';
        if (last !== undefined) last.gap ??= 'stuck';
      }
      // Only polls of removed projects may have held back its verdict.
      if (last !== undefined) judge(last);
      current.isOver = true;
      for (const watched of current.pending) older.add(watched);
      last = current;
      current = newMinute();
      judge(last);
    },
  };
}

function newMinute(): Minute {
  return { pending: new Set(), unfinished: [], gap: undefined, isOver: false, isJudged: false };
}

function hasWanted(polls: Iterable<WatchedPoll>): boolean {
  return Iterator.from(polls).some(({ isWanted }) => isWanted());
}

/** A poll that the service failed was made. One that could not be stored saw nothing. */
function gapOf(finished: FinishedPoll | undefined): Gap | undefined {
  if (finished === undefined) return 'unfinished';
  return finished.isStored ? undefined : 'store';
}

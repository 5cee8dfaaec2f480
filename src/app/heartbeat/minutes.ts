import type { FinishedPoll } from '../../monitor/events.ts';
import type { Clock } from '../../monitor/ports/clock.ts';
import type { PollRun } from '../../monitor/reading.ts';

export const MINUTE_MS = 60_000;

/** Why a due poll was not made (docs/specification.md#heartbeat). */
export type Gap = 'skipped' | 'missed' | 'late' | 'stuck' | 'unfinished' | 'store' | 'lease_lost';

/** Finds the minutes in which every due poll was made. */
export interface Minutes {
  /** Counts a poll of a schedule in the current minute. */
  watch(run: Pick<PollRun, 'dueAt'>, poll: Promise<FinishedPoll | undefined>): void;
  /** Records that a due poll of the current minute was not made. */
  fail(gap: Gap): void;
  /** Ends the current minute and begins the next one. */
  end(): void;
}

interface Minute {
  /** Number of its polls that run. */
  pending: number;
  gap: Gap | undefined;
  isOver: boolean;
  isJudged: boolean;
}

/**
 * Calls `onVerdict` once for each minute: without a gap when it is over and all its polls have ended, otherwise with the
 * first gap, when it is over.
 */
export function createMinutes(
  clock: Pick<Clock, 'now'>,
  onVerdict: (gap: Gap | undefined) => void,
): Minutes {
  let current = newMinute();
  /** The minute before, whose last polls may still run. */
  let last: Minute | undefined;
  /** Number of polls that run since an earlier minute. */
  let older = 0;

  function judge(minute: Minute): void {
    const { isOver, isJudged, pending, gap } = minute;
    if (!isOver || isJudged || (pending > 0 && gap === undefined)) return;
    minute.isJudged = true;
    onVerdict(gap);
  }

  function ended(minute: Minute, gap: Gap | undefined): void {
    minute.pending -= 1;
    if (minute.isOver) older -= 1;
    minute.gap ??= gap;
    judge(minute);
  }

  return {
    watch: ({ dueAt }, poll) => {
      const minute = current;
      if (clock.now() - dueAt >= MINUTE_MS) minute.gap ??= 'late';
      minute.pending += 1;
      poll.then(
        (finished) => ended(minute, gapOf(finished)),
        // A bug, which the scheduler reports.
        () => ended(minute, 'unfinished'),
      );
    },
    fail: (gap) => {
      current.gap ??= gap;
    },
    end: () => {
      if (older > 0) {
        current.gap ??= 'stuck';
        if (last !== undefined) {
          last.gap ??= 'stuck';
          judge(last);
        }
      }
      current.isOver = true;
      older += current.pending;
      last = current;
      current = newMinute();
      judge(last);
    },
  };
}

function newMinute(): Minute {
  return { pending: 0, gap: undefined, isOver: false, isJudged: false };
}

/** A poll that the service failed was made. One that could not be stored saw nothing. */
function gapOf(finished: FinishedPoll | undefined): Gap | undefined {
  if (finished === undefined) return 'unfinished';
  return finished.isStored ? undefined : 'store';
}

import type { Moment, Samples } from './fleet.ts';

const MINUTE = 60;
/** Long before the first scrape. */
const LONG_AGO = -999_000;

interface Trouble {
  /** Minute from which every poll fails with a key that does not work. */
  readonly failsFrom?: number;
  /** Minute in which a prompt has waited as long as its limit. */
  readonly stuckFrom?: number;
  /** Minute in which 30 prompts and a dataset fail, and most other prompts disappear. */
  readonly breaksAt?: number;
  /** Minute from which a poll is due that does not start. */
  readonly stallsFrom?: number;
  /** Minute in which 9 polls were skipped. */
  readonly skipsAt?: number;
  /** Whether each process counts anomalies with its first poll. */
  readonly isOdd?: boolean;
  /** Longest interval of the schedule, seconds. */
  readonly maxInterval?: number;
}

/** One project with each trouble; its alerts fire before minute 20 or are pending then. */
const PROJECTS: Readonly<Record<string, Trouble>> = {
  well: {},
  rare: { maxInterval: 7200 },
  stuck: { stuckFrom: -60 },
  'stuck-late': { stuckFrom: 14 },
  'nearly-stuck': { stuckFrom: 28 },
  failing: { failsFrom: 3 },
  'failing-late': { failsFrom: 17 },
  broken: { breaksAt: 16 },
  skipped: { skipsAt: 6 },
  // A poll that does not start, and anomalies of the first poll, belong to one owner.
  stalled: { stallsFrom: 1 },
  odd: { isOdd: true },
};

export function samplesOf(project: string): Samples {
  return samplesWith(PROJECTS[project] ?? {});
}

function samplesWith(trouble: Trouble): Samples {
  const { failsFrom = Infinity, breaksAt = Infinity, stuckFrom, maxInterval = 30 } = trouble;
  return (moment) => {
    const { at, polledAt, isStoreFailing } = moment;
    const failedPolls = Math.max(0, Math.floor((polledAt - failsFrom * MINUTE) / 30) + 1);
    const isFailing = failedPolls > 0 || isStoreFailing;
    const isBroken = polledAt >= breaksAt * MINUTE;
    const reason = failedPolls > 0 ? 'auth' : 'store';
    return {
      store: {
        'evalwatch_project_configured_timestamp_seconds{}': LONG_AGO,
        'evalwatch_poll_last_success_timestamp_seconds{}': Math.min(
          polledAt,
          failsFrom * MINUTE - 30,
        ),
        ...(stuckFrom !== undefined && {
          'evalwatch_prompt_oldest_in_state_timestamp_seconds{status="RUNNING"}':
            stuckFrom * MINUTE - 14_400,
        }),
        'evalwatch_prompt_state_typical_seconds{status="RUNNING"}': 60,
        'evalwatch_prompts{status="RUNNING"}': 12,
        'evalwatch_prompts{status="FAILED"}': 0,
        'evalwatch_prompts_missing{}': isBroken ? 11 : 0,
        'evalwatch_prompts_gone_total{}': isBroken ? 1 : 0,
        'evalwatch_prompt_transitions_total{from="RUNNING",to="COMPLETED"}': 100,
        'evalwatch_prompt_transitions_total{from="RUNNING",to="FAILED"}': isBroken ? 37 : 7,
        ...(isBroken && {
          'evalwatch_prompt_last_failure_timestamp_seconds{}': breaksAt * MINUTE,
          'evalwatch_dataset_last_failure_timestamp_seconds{}': breaksAt * MINUTE,
          'evalwatch_prompt_error_first_seen_timestamp_seconds{error_id="NEW"}': breaksAt * MINUTE,
          'evalwatch_prompt_failures_total{error_id="NEW"}': 30,
        }),
      },
      process: {
        'evalwatch_project_up{}': isFailing ? 0 : 1,
        'evalwatch_project_consecutive_poll_failures{}': failedPolls || Number(isStoreFailing),
        ...(isFailing && { [`evalwatch_project_poll_failing{reason="${reason}"}`]: 1 }),
        'evalwatch_project_info{team="search"}': 1,
        'evalwatch_project_max_failure_ratio{}': 0.2,
        'evalwatch_project_schedule_max_interval_seconds{}': maxInterval,
        'evalwatch_prompt_state_limit_seconds{status="RUNNING"}': 14_400,
        ...countedBy(moment, trouble),
        'evalwatch_project_next_poll_timestamp_seconds{}':
          trouble.stallsFrom === undefined || moment.ownedSince > 0
            ? (Math.floor(at / 30) + 1) * 30
            : trouble.stallsFrom * MINUTE,
      },
    };
  };
}

/** Counters of the process that owns the project. */
function countedBy({ at, ownedSince }: Moment, { skipsAt = Infinity, isOdd = false }: Trouble) {
  const hasSkipped = ownedSince < skipsAt * MINUTE && at >= skipsAt * MINUTE;
  return {
    'evalwatch_scheduler_missed_runs_total{}': hasSkipped ? 9 : 0,
    'evalwatch_scheduler_overlapped_runs_total{}': 0,
    'evalwatch_item_anomalies_total{reason="invalid"}': isOdd && ownedSince > 0 ? 2 : 0,
  };
}

/** Mutants that no test can kill, because they do not change the meaning of the rule. */
export const EQUIVALENT: readonly {
  readonly rule: RegExp;
  readonly change: RegExp;
  readonly why: string;
}[] = [
  {
    rule: /^project_cause:|^project:evalwatch_prompts_f|^Evalwatch(NewFailureCause|Prompt(Failure.+|sVanished))$/,
    change: /^project -> project, instance /,
    why: 'what is aggregated here was recorded without an instance',
  },
  {
    rule: /^project_reason:evalwatch_project_poll_failing:max$|^EvalwatchAuthFailing$/,
    change: /^(max -> (min|sum)|last_over_time -> (min|max)_over_time|.+, instance) /,
    why: 'the value is always 1, and its number of samples does not matter',
  },
  {
    rule: /^project:evalwatch_service_failing_timestamp_seconds:min$/,
    change: /^last_over_time -> (min|max)_over_time /,
    why: 'it matters which projects there were, not whether they were up',
  },
  {
    rule: /^Evalwatch((Auth|ProjectPoll)Failing|NewFailureCause|DataStale|Scheduler.+|UnexpectedItems|DatasetFailed|Prompt(Failed|Failure.+|Stuck|s.+))$/,
    change: /^\* -> \/ /,
    why: 'the other side is 1 and only brings its label',
  },
  {
    rule: /^project_team:evalwatch_project_info:(group|last5m)$/,
    change: /^last_over_time -> (min|max)_over_time /,
    why: 'the value is always 1; its labels matter',
  },
  {
    rule: /^EvalwatchPromptFailureRatioHigh$/,
    change: /^max -> (min|sum) /,
    why: 'only one window of a project is the most recent',
  },
  {
    rule: /^EvalwatchCrashLooping$/,
    change: /^job="evalwatch" -> nothing /,
    why: 'only series with the same labels are added up, and the other side still names the job',
  },
  {
    rule: /^evalwatch_lookback:seconds$|first_seen_timestamp_seconds:new$/,
    change: /^last_over_time -> max_over_time /,
    why: 'the last time of a scrape is the latest',
  },
  {
    rule: /^evalwatch_seen:max(1m)?$/,
    change: /^max -> min /,
    why: 'all daemons that are up were scraped within the same interval',
  },
  {
    rule: /^evalwatch_seen:max(1m)?$/,
    change: /^job="evalwatch" -> nothing /,
    why: 'only series with the same labels are compared, and the other side still names the job',
  },
  {
    rule: /^EvalwatchErrorInfoBacklog$/,
    change: /^on \(instance\) -> nothing /,
    why: 'the series has no labels but those of its target, as up has',
  },
  {
    rule: /^EvalwatchProjectsUnowned$/,
    change: /^5m -> 390s /,
    why: 'the number of projects is kept for 5 minutes only',
  },
];

import type { JournalEntry } from '../../../../src/simulator/journal.ts';
import type { LogLine, Run } from '../../oracle/observation.ts';

/**
 * The listings that a daemon has taken note of: a poll of the project was completed between each one and the next. What
 * the others showed was not stored, and the oracle must not expect it.
 */
export function notedEntries(
  journal: readonly JournalEntry[],
  runs: readonly Run[],
): readonly JournalEntry[] {
  const completed = Map.groupBy(
    runs.flatMap((run) => run.lines).filter(({ event }) => event === 'poll.completed'),
    ({ project }) => project,
  );
  return journal.filter((entry, index) => {
    const next = journal
      .slice(index + 1)
      .find(({ project, kind }) => project === entry.project && kind === entry.kind);
    const until = next?.producedAt ?? Infinity;
    return (completed.get(entry.project) ?? []).some(({ time }) => {
      const at = Date.parse(time);
      return at >= entry.producedAt && at < until;
    });
  });
}

/**
 * Without the earlier lines of a failure that was told again: when its settlement cannot be stored it has to be, with the
 * same transition_id (contract 4, Failures).
 */
export function withoutRepeats(lines: readonly LogLine[]): readonly LogLine[] {
  const last = new Map(
    lines
      .filter(({ event }) => event === 'prompt.failed')
      .map((line) => [line.transition_id, line] as const),
  );
  return lines.filter(
    (line) => line.event !== 'prompt.failed' || last.get(line.transition_id) === line,
  );
}

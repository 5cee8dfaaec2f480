import { checkChains, checkErrorTotals, checkTotals } from './oracle/totals.ts';
import { checkHistories } from './oracle/history.ts';
import { checkFailures, checkLines } from './oracle/lines.ts';
import type { Observation } from './oracle/observation.ts';

/**
 * Returns the differences between what a daemon recorded, showed or logged and what follows from all that it was served. It
 * shares no code with the daemon: it implements docs/specification.md a second time.
 *
 * Without kills the transitions must be exactly those of the journal, each with its line, and each failure with one line.
 * Around a kill the last listing may count wholly or not at all, its lines may be lost, and a failure's line may come once
 * more. A listing whose request was given up may also count wholly or not at all, as may one served while the store could
 * not be written.
 */
export function differences(observation: Observation): readonly string[] {
  return [
    ...checkHistories(observation),
    ...checkChains(observation),
    ...checkTotals(observation),
    ...checkFailures(observation),
    ...checkErrorTotals(observation),
    ...checkLines(observation),
  ];
}

import { describe } from 'vitest';
import { describeCauses } from './store/causes.ts';
import { describeClosing } from './store/closing.ts';
import { describeDurations } from './store/durations.ts';
import { describeEvents } from './store/events.ts';
import { describeExperiments } from './store/experiments.ts';
import { describeFailureCounts } from './store/failure-counts.ts';
import { describeFailures } from './store/failures.ts';
import { describeFilters } from './store/filters.ts';
import { createHarness, type OpenStore } from './store/harness.ts';
import { describeLabels } from './store/labels.ts';
import { describeNotifications } from './store/notifications.ts';
import { describePolls } from './store/polls.ts';
import { describeProjects } from './store/projects.ts';
import { describeLongRetention, describeRetention } from './store/retention.ts';
import { describeMoves } from './store/moves.ts';
import { describeRows } from './store/rows.ts';
import { describeSnapshots } from './store/snapshots.ts';
import { describeTogether } from './store/together.ts';

/** Tests that every engine of the store must pass (docs/specification.md#commits). */
export function describeStore(name: string, open: OpenStore): void {
  describeContents(name, open);
  describeTurns(name, open);
}

/** Tests what is stored and how it is read. */
export function describeContents(name: string, open: OpenStore): void {
  describe(`${name} store`, () => {
    const harness = createHarness(open);
    describeProjects(harness);
    describePolls(harness);
    describeLabels(harness);
    describeExperiments(harness);
    describeSnapshots(harness);
    describeFailures(harness);
    describeFailureCounts(harness);
    describeRows(harness);
    describeFilters(harness);
    describeEvents(harness);
    describeMoves(harness);
    describeDurations(harness);
    describeCauses(harness);
    describeRetention(harness);
    describeNotifications(harness);
  });
}

/** Tests work that takes many turns, or is under way when the store closes. */
export function describeTurns(name: string, open: OpenStore): void {
  describe(`${name} store`, () => {
    const harness = createHarness(open);
    describeTogether(harness);
    describeLongRetention(harness);
    describeClosing(harness);
  });
}

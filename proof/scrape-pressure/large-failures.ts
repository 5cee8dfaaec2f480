import { join } from 'node:path';
import { createRecordBudget } from '../../src/evaluation-api/listing/record-budget.ts';
import { systemClock } from '../../src/app/clock.ts';
import { createPoller } from '../../src/monitor/poller.ts';
import { openStore } from '../../src/store/sqlite/sqlite-store.ts';
import { listingOf, neverStopping, scriptedService } from '../../test/support/monitor.ts';

const FAILURES = 1000;
const MESSAGE = 'x'.repeat(8000);

/** Creates a store in which a project has 1,000 failures with messages of 8 kB, nearly the maximum that is kept. */
export async function storeLargeFailures(directory: string, project: string): Promise<void> {
  const emit = () => {};
  const path = join(directory, 'evalwatch.db');
  const store = await openStore({ path, clock: systemClock, emit });
  const service = scriptedService();
  const poller = createPoller({
    service,
    store,
    clock: systemClock,
    emit,
    missingAfter: () => 3,
    maxIntervalMs: () => 60_000,
    holdRecords: createRecordBudget(Infinity, systemClock).holdRecords,
    shutdown: neverStopping(),
  });
  await store.configureProjects([project], systemClock.now());
  for (const status of ['RUNNING', 'FAILED']) {
    const ids = Array.from({ length: FAILURES }, (_, n) => [`prompt ${n}`, status] as const);
    service.shows(listingOf(Object.fromEntries(ids)));
    await poller.poll(
      { id: project, datasets: false },
      { dueAt: systemClock.now(), nextAt: undefined },
    );
  }
  const errorInfo = { error_id: 'LARGE', error_msg: MESSAGE };
  const settlement = { errorInfo, errorMsgTruncated: false };
  const pending = await store.pendingFailures({ limitPerProject: FAILURES });
  await Promise.all(
    pending.map((failure) => store.settleFailure(failure, settlement, systemClock.now())),
  );
  await store.close();
}

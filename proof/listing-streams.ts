import { join } from 'node:path';
import { systemClock } from '../src/app/clock.ts';
import type * as BudgetRoom from '../src/evaluation-api/listing/record-budget.ts';
import type * as QueueRoom from '../src/monitor/step-queue.ts';
import type * as ScannerRoom from '../src/evaluation-api/listing/item-scanner.ts';
import type * as StreamRoom from '../src/evaluation-api/listing/listing-stream.ts';

type Asked = Omit<StreamRoom.StreamOptions, 'startScan' | 'steps' | 'rank' | 'budget'>;

/** Returns the function that begins to read a listing with the code below `source`. */
export async function openListingStreams(
  source: string,
): Promise<(asked: Asked) => StreamRoom.ListingStream> {
  const room = join(source, 'evaluation-api/listing');
  const { createItemScanner } = (await import(join(room, 'item-scanner.ts'))) as typeof ScannerRoom;
  const { createListingStream } = (await import(
    join(room, 'listing-stream.ts')
  )) as typeof StreamRoom;
  const { createStepQueue } = (await import(
    join(source, 'monitor/step-queue.ts')
  )) as typeof QueueRoom;
  const { createRecordBudget } = (await import(
    join(room, 'record-budget.ts')
  )) as typeof BudgetRoom;
  const { readListing } = createRecordBudget(Infinity, systemClock);
  const startScan = createItemScanner(1_000_000);
  const steps = createStepQueue(64 * 1024);
  let rank = 0;
  return (asked) => {
    rank += 1;
    return createListingStream({ ...asked, startScan, steps, rank, budget: readListing() });
  };
}

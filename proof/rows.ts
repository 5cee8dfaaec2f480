import { clock } from './clock.ts';
import { corruptStore } from './corrupt-store.ts';
import { disk } from './disk.ts';
import { fullDisk } from './full-disk.ts';
import { failureTraffic } from './failure-traffic.ts';
import { handover } from './handover.ts';
import { hostile } from './hostile.ts';
import { kills } from './kills.ts';
import { partialParsing } from './partial-parsing.ts';
import { powerLoss } from './power-loss.ts';
import { protocol } from './protocol.ts';
import { upgrade } from './upgrade.ts';
import type { Row } from './row.ts';
import { simulation } from './simulation.ts';
import { soak } from './soak.ts';
import { web } from './web.ts';
import { workers } from './workers.ts';

/** Every row of docs/reliability.md. */
export const ROWS: readonly Row[] = [
  powerLoss,
  corruptStore,
  disk,
  fullDisk,
  upgrade,
  kills,
  clock,
  simulation,
  failureTraffic,
  handover,
  hostile,
  partialParsing,
  web,
  protocol,
  workers,
  soak,
];

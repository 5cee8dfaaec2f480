/** Serves the workload of its argument (JSON), prints its address, and exits when its stdin is closed. */
import { startBenchService } from './service.ts';
import type { Workload } from './workload.ts';

// The parent process has ended.
process.stdin.resume().on('end', () => process.exit());
const workload = JSON.parse(process.argv[2] ?? '') as Workload;
const service = await startBenchService(workload);
console.log(service.urlOf(''));
